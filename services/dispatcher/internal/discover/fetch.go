package discover

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai/rawjson"
)

// Bounds of what a provider can make the gateway read and wait for.
const (
	maxBody     = 16 << 20
	maxPages    = 20
	callTimeout = 15 * time.Second
)

// asker asks one provider.
type asker struct {
	client dialect.Client
	source Source
	key    string
}

// get fetches a JSON text. The error is a *RefusedError.
func (a asker) get(ctx context.Context, address string, auth authorize) (gjson.Result, error) {
	return a.ask(ctx, upstream.Call{Method: http.MethodGet, URL: address}, auth)
}

func (a asker) ask(ctx context.Context, call upstream.Call, auth authorize) (gjson.Result, error) {
	call.HeadersTimeout, call.RequestTimeout = callTimeout, callTimeout
	if call.Header = a.source.Header.Clone(); call.Header == nil {
		call.Header = http.Header{}
	}
	call.Header.Set("Accept", "application/json")
	if call.Body != nil {
		call.Header.Set("Content-Type", "application/json")
	}
	if a.key != "" {
		auth(call.Header, a.key)
	}
	resp, err := a.client.Do(ctx, call)
	if err != nil {
		return gjson.Result{}, &RefusedError{Verdict: classify.Transport(ctx, err), err: err}
	}
	defer resp.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return gjson.Result{}, &RefusedError{Verdict: classify.Transport(ctx, err), err: err}
	}
	return a.read(resp, body)
}

// read takes a success for one only when the body is JSON and reports no error.
func (a asker) read(resp *upstream.Response, body []byte) (gjson.Result, error) {
	if len(body) > maxBody {
		return gjson.Result{}, unusable("answer too large")
	}
	body = bytes.ToValidUTF8(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), []byte("\uFFFD"))
	sound := resp.Status/100 == 2 && rawjson.Valid(body)
	root := gjson.Result{}
	if sound {
		root = gjson.ParseBytes(body)
	}
	if sound && root.IsArray() && !root.Get("0.error").Exists() {
		return root, nil
	}
	v := classify.Of(classify.Answer{Provider: a.source.Vendor, Status: resp.Status, Header: resp.Header, Body: body})
	switch {
	case v.Failed():
		if a.key != "" { // a code of the provider's may be the key that it was sent
			v.Reason = strings.ReplaceAll(v.Reason, a.key, "[redacted]")
		}
		return gjson.Result{}, &RefusedError{Verdict: v}
	case !sound:
		return gjson.Result{}, unusable("no json")
	}
	return root, nil
}
