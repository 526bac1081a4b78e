package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/natstest"
)

// post asks for a chat completion and gives status and body.
func (x *bundle) post(ctx context.Context, client *http.Client, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// Repeated messages of any kind change nothing: no request runs twice, no byte comes twice.
func TestRepeatedMessages(t *testing.T) {
	t.Parallel()
	proxy := answersThrough(t, faultbus.Rule{Subject: "hydra.v1.>", Repeat: 0.2})
	require.Greater(t, proxy.Repeated(), faultClients)
}

// nor do messages that are late, overtaken or, where that is allowed for, lost.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	proxy := answersThrough(t, faultbus.Weather()...)
	require.Greater(t, proxy.Late(), faultClients)
	require.Greater(t, proxy.Swapped(), faultClients)
	require.Positive(t, proxy.Repeated())
}

// faultClients ask in a test of faults of the bus.
const faultClients = 60

// answersThrough asks a gateway whose bus has faults, and holds it to one upstream call and one whole answer for each client.
func answersThrough(t *testing.T, rules ...faultbus.Rule) *faultbus.Proxy {
	t.Helper()
	const chunks = 24 // of 128 KiB, so that an answer needs several credits
	proxy := faultbus.Start(t, natstest.StartListening(t).ClientURL(), 7, rules...)
	x := startOn(t, proxy.URL())
	words := make([]string, chunks)
	for i := range words {
		words[i] = fmt.Sprintf("(%d)%s;", i, strings.Repeat("x", 128<<10))
	}
	x.a.Handle(func(r fakellm.Request) fakellm.Answer {
		if r.Streams() {
			return fakellm.Stream(words...)
		}
		return fakellm.Chat("short answer")
	})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	var asking sync.WaitGroup
	for i := range faultClients {
		asking.Go(func() {
			status, body, err := x.post(t.Context(), client, fmt.Sprintf(`{"model":"m","stream":%t,"messages":[{"role":"user","content":"hi"}]}`, i%4 == 0))
			switch {
			case err != nil || status != http.StatusOK:
				t.Errorf("client %d: status %d, %v", i, status, err)
			case i%4 != 0:
				if !strings.Contains(body, "short answer") {
					t.Errorf("client %d: %s", i, body)
				}
			default:
				for _, w := range words {
					if strings.Count(body, w) != 1 {
						t.Errorf("client %d: a piece is missing or comes twice", i)
						break
					}
				}
				if strings.Count(body, "data: [DONE]") != 1 {
					t.Errorf("client %d: the stream does not end once", i)
				}
			}
		})
	}
	asking.Wait()
	require.Len(t, x.a.Requests(), faultClients, "no request runs twice")
	return proxy
}

// a lease that is not renewed in time, because the machine is slow, is no reason to call an upstream again or to break off an answer: whoever
// gets the message finds out that its worker lives.
func TestLateWorkers(t *testing.T) {
	t.Parallel()
	const (
		clients = 6
		words   = 60
	)
	proxy := faultbus.Start(t, natstest.StartListening(t).ClientURL(), 7,
		faultbus.Rule{Subject: "$JS.ACK.>", Loss: 1}, faultbus.Rule{Subject: "hydra.v1.alive.*", Loss: 0.5})
	x, other := startOn(t, proxy.URL()), startOn(t, proxy.URL()) // each takes messages of both
	text := make([]string, words)
	for i := range text {
		text[i] = fmt.Sprintf("(%d)", i)
	}
	for _, s := range []*fakellm.Server{x.a, other.a} {
		s.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Stream(text...).Gap(300 * time.Millisecond) })
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	var asking sync.WaitGroup
	for i := range clients {
		asking.Go(func() {
			status, body, err := x.post(t.Context(), &http.Client{Transport: tr}, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
			if err != nil || status != http.StatusOK || strings.Count(body, "data: [DONE]") != 1 {
				t.Errorf("client %d: status %d, %v: %s", i, status, err, body)
			}
			for _, w := range text {
				if strings.Count(body, w) != 1 {
					t.Errorf("client %d: %s is missing or comes twice", i, w)
				}
			}
		})
	}
	asking.Wait()
	require.Greater(t, proxy.Lost(), clients, "the leases are over, several times")
	require.Equal(t, clients, len(x.a.Requests())+len(other.a.Requests()), "no request runs twice")
}

// a cancellation that got lost is sent again, so that no upstream call goes on for nobody.
func TestLostCancellations(t *testing.T) {
	t.Parallel()
	const clients = 10
	proxy := faultbus.Start(t, natstest.StartListening(t).ClientURL(), 7, faultbus.Rule{Subject: "hydra.v1.cancel.*", Loss: 0.4})
	x := startOn(t, proxy.URL())
	x.a.Handle(func(fakellm.Request) fakellm.Answer {
		return fakellm.Stream(slices.Repeat([]string{"word "}, 2000)...).Gap(20 * time.Millisecond)
	})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	var leaving sync.WaitGroup
	for range clients {
		leaving.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := x.readSome(ctx, &http.Client{Transport: tr}); err != nil {
				t.Errorf("reading the beginning: %v", err)
			}
		})
	}
	leaving.Wait()
	x.a.Await(t, func(calls []fakellm.Request) bool {
		return len(calls) == clients && !slices.ContainsFunc(calls, func(r fakellm.Request) bool { return r.Left.IsZero() })
	})
	require.Positive(t, proxy.Lost())
}

// readSome begins to read a stream.
func (x *bundle) readSome(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // the end is not wanted
	_, err = io.ReadFull(resp.Body, make([]byte, 100))
	return err
}
