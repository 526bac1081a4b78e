package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxRedirects = 3
	// browserAgent is what the engines see that answer nothing but browsers.
	browserAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
)

// Client gives a client for engines. Their addresses come from the configuration or are built in, so that they may be internal. It
// ignores proxies of the environment, keeps no cookies, and follows redirects of GET within a host alone.
func Client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: engineTimeout}).DialContext,
			TLSHandshakeTimeout: engineTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if first := via[0]; len(via) > maxRedirects || first.Method != http.MethodGet || r.URL.Host != first.URL.Host || r.URL.Scheme != first.URL.Scheme {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// answer is what an engine said.
type answer struct {
	status int
	url    *url.URL // that was asked in the end
	body   []byte
}

// send gets an answer of bounded size.
func (c *Chain) send(r *http.Request, q query) (answer, error) {
	if tag := q.lang.tag(); tag != "" {
		r.Header.Set("Accept-Language", tag+","+q.lang.code+";q=0.8")
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "HydraLLM")
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return answer{}, plain(err)
	}
	defer func() { _ = resp.Body.Close() }()
	at := r.URL
	if resp.Request != nil && resp.Request.URL != nil {
		at = resp.Request.URL
	}
	if at.Host != r.URL.Host {
		return answer{}, errors.New("it sent the gateway to another host")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("reading its answer: %w", plain(err))
	}
	if len(body) > maxAnswer {
		return answer{}, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return answer{status: resp.StatusCode, url: at, body: body}, nil
}

// plain leaves the address out of an error: it has the query in it, which belongs in no log.
func plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// tag is the language as headers have it, such as ko-KR; "" if it is not known.
func (l language) tag() string {
	if l.code == "" {
		return ""
	}
	return l.code + "-" + l.region
}

// get makes a request with parameters; those that are empty are left out.
func get(ctx context.Context, address string, params map[string]string) (*http.Request, error) {
	v := url.Values{}
	for key, value := range params {
		if value != "" {
			v.Set(key, value)
		}
	}
	return http.NewRequestWithContext(ctx, http.MethodGet, address+"?"+v.Encode(), http.NoBody)
}

// refusal says what a status means that is no answer, nil for 200.
func (a answer) refusal() error {
	switch a.status {
	case http.StatusOK:
		return nil
	case http.StatusAccepted, http.StatusForbidden, http.StatusTooManyRequests:
		return fmt.Errorf("%w (status %d)", errChallenge, a.status)
	}
	return fmt.Errorf("it answered with status %d", a.status)
}
