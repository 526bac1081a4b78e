package discover_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// memory is a client whose servers are functions.
type memory func(w http.ResponseWriter, r *http.Request)

func (m memory) Do(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := http.NewRequestWithContext(ctx, call.Method, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		cancel(err)
		return nil, err
	}
	r.Header = call.Header
	w := httptest.NewRecorder()
	m(w, r)
	if err := context.Cause(ctx); err != nil {
		cancel(err)
		return nil, err
	}
	return upstream.NewResponse(ctx, cancel, w.Code, w.Header(), io.NopCloser(w.Body)), nil
}

// serve answers with fixtures by path; other paths are not found.
func serve(files map[string]string) memory {
	return func(w http.ResponseWriter, r *http.Request) {
		file, ok := files[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "404 page not found")
			return
		}
		f := fixtures.Get(file)
		for name := range f.Header {
			w.Header().Set(name, f.Header.Get(name))
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write(f.Body)
	}
}

// say answers every request with the same body.
func say(status int, body string) memory {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
