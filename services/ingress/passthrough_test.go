package ingress_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/contract"
	"hydrallm/shared/topology"
)

const formType = "multipart/form-data; boundary=B"

func formOf(model, file string) string {
	return "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" + file +
		"\r\n--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" + model + "\r\n--B--\r\n"
}

// models makes models of the configuration.
func models(names ...string) func(*ingress.Config) {
	return func(c *ingress.Config) {
		c.MaxBody = testLimit
		for _, name := range names {
			c.Models = append(c.Models, ingress.Model{ID: name})
		}
	}
}

// bodies travel as they came, forms with their type, and answers go on as they come.
func TestPassthrough(t *testing.T) {
	t.Parallel()
	g := setup(t, models("m", "omni-moderation-latest"))
	seen := make(chan *reply, 1)
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		seen <- r
		_ = r.Head(contract.Head{Status: http.StatusOK, Stream: true, Header: [][2]string{{"Content-Type", "audio/mpeg"}, {"X-Gateway-Model", "up"}}})
		_ = r.send(ctx, "ID3\x00")
		_ = r.send(ctx, "\n\n\xff")
		_ = r.end()
	})
	big := formOf("m", strings.Repeat("\x00RIFF\r\n", testLimit/8)[:testLimit/2])
	for name, c := range map[string]struct {
		path, kind, body string
		operation        contract.Operation
		model            string
	}{
		"speech":           {"/v1/audio/speech", "application/json", `{"model":"m","input":"hi"}`, contract.Speech, "m"},
		"transcription":    {"/v1/audio/transcriptions", formType, big, contract.Transcriptions, "m"},
		"translation":      {"/v1/audio/translations/", formType, formOf("m", "x"), contract.Translations, "m"},
		"images":           {"/v1/images/generations", "", `{"model":"m","prompt":"a lamp","stream":true}`, contract.ImageGenerations, "m"},
		"edits":            {"/v1/images/edits", formType, formOf("m", "x"), contract.ImageEdits, "m"},
		"edits as JSON":    {"/v1/images/edits", "application/json", `{"model":"m"}`, contract.ImageEdits, "m"},
		"variations":       {"/v1/images/variations", formType, formOf("m", "x"), contract.ImageVariations, "m"},
		"rerank":           {"/v1/rerank", "text/plain", `{"model":"m","query":"q","documents":[]}`, contract.Rerank, "m"},
		"moderations":      {"/v1/moderations", "application/json", `{"input":"hi"}`, contract.Moderations, "omni-moderation-latest"},
		"moderations of m": {"/v1/moderations", "application/json", `{"input":"hi","model":"m"}`, contract.Moderations, "m"},
	} {
		a := g.do(http.MethodPost, c.path, strings.NewReader(c.body), "Content-Type", c.kind)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s: %s", name, a.body)
		require.Equal(t, "ID3\x00\n\n\xff", a.body)
		require.Equal(t, "audio/mpeg", a.Header.Get("Content-Type"))
		require.EqualValues(t, -1, a.ContentLength)
		r := (<-seen).work
		require.Equal(t, c.body, string(r.Body), name)
		require.Equal(t, c.operation, r.Request.Operation, name)
		require.Equal(t, c.model, r.Request.Model, name)
		require.True(t, r.Request.Decision.Configured)
		require.False(t, r.Request.Stream)
		require.Empty(t, r.Request.SessionID)
		want := ""
		if c.kind == formType {
			want = formType
		}
		require.Equal(t, want, r.Request.ContentType, name)
	}
	text := g.do(http.MethodGet, "/metrics", nil).body
	require.Contains(t, text, `hydrallm_ingress_requests_total{class="2xx",route="audio"} 3`)
}

// none of these reaches the pipeline, and each says what is wrong.
func TestBadPassthrough(t *testing.T) {
	t.Parallel()
	g := setup(t, models("m")) // no worker: what is accepted would never be answered
	for name, c := range map[string]struct {
		path, kind, body string
		status           int
		code, says       string
	}{
		"no model":            {"/v1/images/generations", "", `{"prompt":"x"}`, 400, "missing_required_parameter", "'model'"},
		"no model in a form":  {"/v1/audio/transcriptions", formType, "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--B--", 400, "missing_required_parameter", "'model'"},
		"not configured":      {"/v1/audio/speech", "", `{"model":"tts-1","input":"x"}`, 404, "model_not_found", "'models' in the configuration"},
		"a provider's":        {"/v1/rerank", "", `{"model":"p/real"}`, 404, "model_not_found", "/v1/rerank"},
		"auto":                {"/v1/images/edits", formType, formOf("auto", "x"), 404, "model_not_found", "`auto`"},
		"default moderation":  {"/v1/moderations", "", `{"input":"x"}`, 404, "model_not_found", "`omni-moderation-latest`"},
		"broken":              {"/v1/moderations", "", `{broken`, 400, "invalid_json", ""},
		"a broken form":       {"/v1/images/edits", formType, formOf("m", "x")[:60], 400, "invalid_value", "form"},
		"a form as JSON":      {"/v1/audio/speech", formType, formOf("m", "x"), 400, "invalid_json", ""},
		"a long name":         {"/v1/audio/speech", "", `{"model":"` + strings.Repeat("m", 600) + `"}`, 400, "invalid_value", "model"},
		"too large":           {"/v1/audio/translations", formType, formOf("m", strings.Repeat("x", testLimit)), 413, "request_too_large", ""},
		"what is not there":   {"/v1/audio/nothing", "", `{}`, 404, "not_found", "POST /v1/audio/speech"},
		"above what is there": {"/v1/images", "", `{}`, 404, "not_found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := g.do(http.MethodPost, c.path, strings.NewReader(c.body), "Content-Type", c.kind)
			message, code := requireError(t, a, c.status)
			require.Equal(t, c.code, code)
			require.Contains(t, message, c.says)
		})
	}
}

// an answer that is not whole ends with the connection; a stream of events with an error.
func TestPassthroughBreaksOff(t *testing.T) {
	t.Parallel()
	g := setup(t, models("m"))
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		kind := "audio/mpeg"
		if r.work.Request.Operation == contract.Transcriptions {
			kind = "text/event-stream"
		}
		_ = r.Head(contract.Head{Status: http.StatusOK, Stream: true, Header: [][2]string{{"Content-Type", kind}}})
		_ = r.send(ctx, "data: 1\n\n")
		_ = r.End(contract.End{Outcome: contract.OutcomeBroken})
		_ = r.Flush()
	})
	a, err := g.try(t.Context(), http.MethodPost, "/v1/audio/speech", strings.NewReader(`{"model":"m"}`))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "data: 1\n\n", a.body)

	a = g.do(http.MethodPost, "/v1/audio/transcriptions", strings.NewReader(formOf("m", "x")), "Content-Type", formType)
	require.True(t, strings.HasPrefix(a.body, "data: 1\n\ndata: {\"error\":"), a.body)
	require.Contains(t, a.body, `"code":"upstream_error"`)
	require.Contains(t, g.do(http.MethodGet, "/metrics", nil).body, `unfinished_total{reason="`+pending.Reason(pending.ErrBroken)+`"} 2`)
}
