package messages_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/surface/messages"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// passNative passes a native stream on, and gives what was kept of it.
func passNative(tb testing.TB, text string, d surface.Disclosure) (out string, original []byte) {
	tb.Helper()
	r, err := messages.Surface{}.Read(&contract.Request{}, []byte(question))
	require.NoError(tb, err)
	d.Native = true
	a := r.Answer(d)
	src := answer.Native(openai.NewReader(strings.NewReader(text), 0), anthropic.Translator{}.Events(), contract.SurfaceMessages)
	var all []byte
	for {
		c, err := src.Next()
		if err != nil {
			require.True(tb, errors.Is(err, io.EOF) || errors.Is(err, openai.ErrEventTooLarge))
			break
		}
		all = a.Append(all, c)
	}
	return string(a.End(all, stream.End{})), a.(surface.Keeping).Original() //nolint:forcetypeassert // a native answer keeps
}

// what is kept of a native stream are its blocks, put together.
func TestOriginals(t *testing.T) {
	t.Parallel()
	out, original := passNative(t, string(fixtures.Get("anthropic/stream-thinking.sse").Body), surface.Disclosure{Session: "s"})
	require.Equal(t, string(fixtures.Get("anthropic/stream-thinking.sse").Body), out)
	require.JSONEq(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"Look at the lamp.","signature":"c2lnLWZ4"},{"type":"text","text":"Green."}]}`, string(original))
	_, original = passNative(t, string(fixtures.Get("anthropic/stream-tools.sse").Body), surface.Disclosure{Session: "s"})
	require.Equal(t, "Oslo", gjson.GetBytes(original, "content.1.input.city").Str)
	_, original = passNative(t, string(fixtures.Get("anthropic/stream-text.sse").Body), surface.Disclosure{})
	require.Nil(t, original, "it belongs to no session")
	large := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"" + strings.Repeat("x", 2<<20) + "\"}}\n\n"
	_, original = passNative(t, large, surface.Disclosure{Session: "s"})
	require.Nil(t, original, "it is too much")
}

// an error of the gateway ends a stream whose provider said nothing.
func TestNativeFails(t *testing.T) {
	t.Parallel()
	r, err := messages.Surface{}.Read(&contract.Request{}, []byte(question))
	require.NoError(t, err)
	a := r.Answer(surface.Disclosure{Native: true})
	require.Contains(t, string(a.Fail(nil, fault.New(fault.Internal, "x"))), "event: error\n")
	own := []byte("event: error\ndata: {}\n\n")
	out := a.Append(nil, &answer.Chunk{Kind: answer.Problem, Raw: own, Of: contract.SurfaceMessages})
	require.Equal(t, string(own), string(a.Fail(out, fault.New(fault.Internal, "x"))))
	require.Empty(t, a.Append(nil, &answer.Chunk{Kind: answer.Comment, Raw: []byte(": x\n\n")}), "it is of another protocol")
}

func FuzzNative(f *testing.F) {
	for _, fixture := range fixtures.Of("anthropic") {
		if fixture.Kind() == "sse" {
			f.Add(string(fixture.Body))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, original := passNative(t, text, surface.Disclosure{Session: "s", Model: "auto"})
		require.True(t, original == nil || json.Valid(original), string(original))
	})
}
