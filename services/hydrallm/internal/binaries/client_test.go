package binaries

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

// client is somebody who uses a gateway.
type client struct {
	base string // of the API, with /v1
	key  string // "" for none
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
}

// question asks a model.
func question(model string, stream bool) string {
	body := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]`
	if stream {
		body += `,"stream":true`
	}
	return body + "}"
}

// send makes a request whose answer the caller reads and closes. The header fields are names and values in turn.
func (c client) send(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	resp, err := c.try(t.Context(), method, path, body, header...)
	require.NoError(t, err)
	return resp
}

// try is send for a goroutine that is not the test's.
func (c client) try(ctx context.Context, method, path, body string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
}

func (c client) do(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	r, err := read(c.send(t, method, path, body, header...), nil) //nolint:bodyclose // read does
	require.NoError(t, err)
	return r
}

// read reads an answer to its end.
func read(resp *http.Response, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(text)}, errors.Join(err, resp.Body.Close())
}

// ask asks a model for a whole answer.
func (c client) ask(t *testing.T, model string) reply {
	t.Helper()
	return c.do(t, http.MethodPost, "/chat/completions", question(model, false))
}

// awaitListed waits until a model can be asked for.
func (c client) awaitListed(t *testing.T, model string) {
	t.Helper()
	await.True(t, func() bool {
		return strings.Contains(c.do(t, http.MethodGet, "/models", "").body, `"id":"`+model+`"`)
	}, model)
}

// portOf is the port of an address.
func portOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port
}
