package answer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// nativeText joins what a client gets of a native stream, and says how many chunks meant something.
func nativeText(text string) (out string, meaning int) {
	src := answer.Native(openai.NewReader(strings.NewReader(text), 0), anthropic.Translator{}.Events(), contract.SurfaceMessages)
	for {
		c, err := src.Next()
		if err != nil {
			return out, meaning
		}
		if c.Kind == answer.Piece {
			meaning++
		}
		if c.Of == contract.SurfaceMessages {
			out += string(c.Raw)
		}
	}
}

// each event of a native stream passes once, with what it means to the hub.
func TestNative(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("anthropic") {
		if f.Kind() != "sse" {
			continue
		}
		text := string(f.Body)
		out, meaning := nativeText(text)
		require.Equal(t, text, out, f.File)
		if !strings.Contains(f.File, "error") {
			require.Positive(t, meaning)
		}
		crlf := strings.ReplaceAll(text, "\n", "\r\n")
		out, _ = nativeText(crlf)
		require.Equal(t, crlf, out, f.File)
	}
	const event = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	for in, want := range map[string]string{
		event + "event: ping\ndata: {\"ty": event, // half an event does not pass
		"\xef\xbb\xbf" + event:             event,
		": comment\n\n" + event:            ": comment\n\n" + event,
	} {
		out, _ := nativeText(in)
		require.Equal(t, want, out)
	}
}

func FuzzNative(f *testing.F) {
	for _, fixture := range fixtures.Of("anthropic") {
		if fixture.Kind() == "sse" {
			f.Add(string(fixture.Body))
		}
	}
	f.Fuzz(func(_ *testing.T, text string) { nativeText(text) })
}
