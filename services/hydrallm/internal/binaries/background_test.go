package binaries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// front is a gateway as a client of Responses sees it.
type front struct{ addr string }

// beside starts one more ingress of the fleet.
func (f *fleet) beside(t *testing.T) front {
	t.Helper()
	other := *f
	other.ingress = freeport.Addr(t)
	text, err := os.ReadFile(f.config)
	require.NoError(t, err)
	other.config = filepath.Join(t.TempDir(), "config.yaml")
	changed := strings.Replace(string(text), "port: "+portOf(t, f.ingress), "port: "+portOf(t, other.ingress), 1)
	require.NoError(t, os.WriteFile(other.config, []byte(changed), 0o600))
	other.start(t, "ingress")
	return front{other.ingress}
}

// begin asks for a response in the background and gives its id.
func (f front) begin(t *testing.T) string {
	t.Helper()
	r := client{base: "http://" + f.addr + "/v1"}.do(t, http.MethodPost, "/responses", `{"model":"m","input":"hi","background":true}`)
	require.Equal(t, http.StatusOK, r.status, r.body)
	require.Equal(t, "queued", gjson.Get(r.body, "status").Str)
	return gjson.Get(r.body, "id").Str
}

// until polls a response until it has a status.
func (f front) until(t *testing.T, id, status string) (r gjson.Result) {
	t.Helper()
	await.True(t, func() bool {
		got := client{base: "http://" + f.addr + "/v1"}.do(t, http.MethodGet, "/responses/"+id, "")
		require.Equal(t, http.StatusOK, got.status, got.body)
		r = gjson.Parse(got.body)
		return r.Get("status").Str == status
	}, status)
	return r
}

// stream reads events of a response behind one of them, and hands each to take until that is false. A stream that is cut ends like any other.
func (f front) stream(ctx context.Context, id string, after int, take func(event string) bool) error {
	url := "http://" + f.addr + "/v1/responses/" + id + "?stream=true"
	if after >= 0 {
		url += fmt.Sprintf("&starting_after=%d", after)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(resp.Body)
		return errors.Join(fmt.Errorf("status %d: %s", resp.StatusCode, text), err)
	}
	in, block := bufio.NewReader(resp.Body), ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil
		}
		if block += line; line != "\n" {
			continue
		}
		if !strings.HasPrefix(block, ":") && !take(block) {
			return nil
		}
		block = ""
	}
}

// whole reads all events of a response.
func (f front) whole(t *testing.T, id string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, f.stream(t.Context(), id, -1, func(event string) bool {
		all.WriteString(event)
		return true
	}))
	return all.String()
}

// when the ingress that took a request is killed, each of 200 clients, which have seen 1 to 200 events, takes the stream up at another one, behind the event
// that it has seen last, and has all events once.
func TestKilledIngressLosesNoBackgroundStream(t *testing.T) {
	t.Parallel()
	const cuts = 200
	f := newFleet(t)
	f.upstream.Handle(func(fakellm.Request) fakellm.Answer {
		words := make([]string, cuts+20)
		for i := range words {
			words[i] = fmt.Sprintf("word%d ", i)
		}
		return fakellm.Stream(words...).Gap(5 * time.Millisecond)
	})
	f.start(t, "dispatcher")
	doomed := f.start(t, "ingress")
	first, second := front{f.ingress}, f.beside(t)
	id := first.begin(t)

	ctx, cancel := context.WithTimeout(t.Context(), 2*startWait)
	defer cancel()
	seen, killed := make([]string, cuts+1), make(chan struct{})
	var reading, clients sync.WaitGroup
	for cut := 1; cut <= cuts; cut++ {
		reading.Add(1)
		clients.Go(func() {
			got, number := "", 0
			told := sync.OnceFunc(reading.Done)
			defer told()
			err := first.stream(ctx, id, -1, func(event string) bool {
				if number == cut {
					<-killed // what came behind is not looked at: it did not reach the client
					return false
				}
				got, number = got+event, number+1
				if number == cut {
					told()
				}
				return true
			})
			if err == nil && number == cut {
				err = second.stream(ctx, id, cut-1, func(event string) bool {
					got += event
					return true
				})
			}
			if err != nil {
				t.Error(err)
			}
			seen[cut] = got
		})
	}
	reading.Wait()
	doomed.End(t, syscall.SIGKILL)
	close(killed)
	clients.Wait()
	want := second.whole(t, id)
	require.Contains(t, want, fmt.Sprintf("word%d ", cuts+19))
	for cut := 1; cut <= cuts; cut++ {
		require.Equal(t, want, seen[cut], "cut behind event %d", cut)
	}
	require.Len(t, f.upstream.Requests(), 1)
}

// a dispatcher that is killed before content came loses nothing: another one answers. What waits for the first dispatcher is answered too, although the ingress
// that took it is gone.
func TestKilledDispatcherLosesNoBackgroundResponse(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.upstream.Queue(fakellm.NoAnswer())
	f.upstream.Handle(fakellm.Talk("all is well"))
	doomed := f.start(t, "ingress")
	id := front{f.ingress}.begin(t)
	doomed.End(t, syscall.SIGKILL)
	second := f.beside(t)
	second.until(t, id, "queued")
	first := f.start(t, "dispatcher")
	f.upstream.AwaitCount(t, 1)
	second.until(t, id, "in_progress")
	f.start(t, "dispatcher")
	first.End(t, syscall.SIGKILL)
	require.Equal(t, "all is well", second.until(t, id, "completed").Get("output.0.content.0.text").Str)
	require.Len(t, f.upstream.Requests(), 2)
}

// a dispatcher that is killed within an answer leaves a failed response with what came, for everybody who reads it, and nobody asks again.
func TestKilledDispatcherFailsABegunResponse(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.upstream.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Stream("one ", "two").First(3, fakellm.Hang) })
	f.start(t, "ingress")
	first := f.start(t, "dispatcher")
	g := front{f.ingress}
	id := g.begin(t)
	live, came := make(chan string, 1), make(chan struct{})
	go func() {
		all, tell := "", sync.OnceFunc(func() { close(came) })
		if err := g.stream(t.Context(), id, -1, func(event string) bool {
			if all += event; strings.Contains(event, `"delta":"two"`) {
				tell()
			}
			return true
		}); err != nil {
			t.Error(err)
		}
		live <- all
	}()
	await.Value(t, came)
	first.End(t, syscall.SIGKILL)
	f.start(t, "dispatcher")
	r := g.until(t, id, "failed")
	require.Equal(t, "one two", r.Get("output.0.content.0.text").Str)
	require.Equal(t, "server_error", r.Get("error.code").Str)
	all := await.Value(t, live)
	require.Contains(t, all, "response.failed")
	require.Equal(t, all, g.whole(t, id))
	require.Len(t, f.upstream.Requests(), 1)
}

// a whole gateway that is killed goes on with a response in the background at its next start, and has those that were done.
func TestKilledGatewayKeepsBackgroundResponses(t *testing.T) {
	t.Parallel()
	binary, dir, addr := processtest.AllInOne(t), t.TempDir(), freeport.Addr(t)
	upstream := fakellm.Start(t)
	upstream.Queue(fakellm.Stream("first"), fakellm.NoAnswer())
	upstream.Handle(fakellm.Talk("all is well"))
	env := alone(t, dir, addr, upstream.URL())
	w := processtest.Run(t, binary, env)
	w.AwaitReady(t, addr)
	g := front{addr}
	done := g.begin(t)
	g.until(t, done, "completed")
	whole := g.whole(t, done)
	id := g.begin(t)
	upstream.AwaitCount(t, 2)
	g.until(t, id, "in_progress")
	w.End(t, syscall.SIGKILL)
	processtest.Run(t, binary, env).AwaitReady(t, addr)
	require.Equal(t, whole, g.whole(t, done))
	require.Equal(t, "all is well", g.until(t, id, "completed").Get("output.0.content.0.text").Str)
	require.Len(t, upstream.Requests(), 3)
}

type outcome struct {
	reply reply
	err   error
}

// when the ingress that took a request with a key is killed, its client gets the answer under this key at another one, whether it is under way or over, with one call of
// the upstream.
func TestKilledIngressLosesNoRequestWithAKey(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	release := make(chan struct{})
	f.upstream.Handle(func(fakellm.Request) fakellm.Answer {
		<-release
		return fakellm.Stream("all ", "is ", "well")
	})
	f.start(t, "dispatcher")
	doomed := f.start(t, "ingress")
	second := client{base: "http://" + f.beside(t).addr + "/v1"}
	ask := func(c client) <-chan outcome {
		came := make(chan outcome, 1)
		go func() {
			r, err := read(c.try(t.Context(), http.MethodPost, "/chat/completions", question("m", true), "Idempotency-Key", "k"))
			came <- outcome{r, err}
		}()
		return came
	}
	lost := ask(client{base: "http://" + f.ingress + "/v1"})
	f.upstream.AwaitCount(t, 1)
	doomed.End(t, syscall.SIGKILL)
	require.Error(t, await.Value(t, lost).err)
	joined := ask(second)
	close(release)
	whole := await.Value(t, joined)
	require.NoError(t, whole.err)
	again := second.do(t, http.MethodPost, "/chat/completions", question("m", true), "Idempotency-Key", "k")
	for _, r := range []reply{whole.reply, again} {
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Contains(t, r.body, "well")
		require.Contains(t, r.body, "[DONE]")
	}
	require.Equal(t, whole.reply.body, again.body)
	require.Len(t, f.upstream.Requests(), 1)
}
