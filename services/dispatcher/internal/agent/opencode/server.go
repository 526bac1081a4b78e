package opencode

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
)

// user is the name that goes with the password of a server.
const user = "opencode"

// maxAnswer bounds what is read of an answer, and what is kept of a turn.
const maxAnswer = 64 << 20

var errTooLong = errors.New("the answer of OpenCode is larger than the limit")

// server makes calls to one server.
type server struct {
	client dialect.Client
	base   string
	header http.Header
	limit  time.Duration
}

// newServer makes a server out of what a call says of one. Calls to it may take so long.
func newServer(client dialect.Client, call upstream.Call, limit time.Duration) server {
	h := call.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json")
	if call.Key != "" && h.Get("Authorization") == "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+call.Key)))
	}
	return server{client: client, base: call.URL, header: h, limit: limit}
}

// serverAnswer is a whole answer of a server.
type serverAnswer struct {
	status int
	body   []byte
}

func (a serverAnswer) ok() bool { return a.status/100 == 2 }

// healthPath is where a server says whether it is well.
const healthPath = "/global/health"

func (a serverAnswer) healthy() bool { return a.ok() && a.json().Get("healthy").Bool() }

func (a serverAnswer) json() gjson.Result {
	if !gjson.ValidBytes(a.body) {
		return gjson.Result{}
	}
	return gjson.ParseBytes(a.body)
}

// failure is what a status other than 2xx means.
func (a serverAnswer) failure() failure {
	f := readFailure(a.json())
	f.status, f.body = a.status, a.body
	return f
}

func (s server) get(ctx context.Context, path string) (serverAnswer, error) {
	return s.do(ctx, http.MethodGet, path, nil)
}

func (s server) post(ctx context.Context, path string, body []byte) (serverAnswer, error) {
	return s.do(ctx, http.MethodPost, path, body)
}

func (s server) do(ctx context.Context, method, path string, body []byte) (serverAnswer, error) {
	call := s.call(method, path)
	call.Body = body
	call.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(ctx, call)
	if err != nil {
		return serverAnswer{}, err
	}
	defer resp.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return serverAnswer{}, fmt.Errorf("reading an answer of OpenCode: %w", err)
	case len(text) > maxAnswer:
		return serverAnswer{}, errTooLong
	}
	return serverAnswer{resp.Status, text}, nil
}

// events opens the stream of what happens on the server.
func (s server) events(ctx context.Context) (*upstream.Response, error) {
	call := s.call(http.MethodGet, "/event")
	call.Stream = true
	call.Header.Set("Accept", "text/event-stream")
	return s.client.Do(ctx, call)
}

// call prepares a call. That of a message has no headers before the turn is over.
func (s server) call(method, path string) upstream.Call {
	return upstream.Call{
		Method: method, URL: dialect.Operation(s.base, path), Header: s.header.Clone(),
		HeadersTimeout: s.limit, RequestTimeout: s.limit,
	}
}
