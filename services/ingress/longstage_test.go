package ingress_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// A process of this test binary with enricherEnv set is an enricher on the NATS server of that address. It works on each request for workEnv, then
// adds a member to the body.
const (
	enricherEnv = "HYDRALLM_TEST_ENRICHER"
	workEnv     = "HYDRALLM_TEST_WORK"
	addedMember = `,"added":"from the web"}`
)

// runEnricher serves until its standard input ends, which it does with the process that started it.
func runEnricher(url string) {
	ctx := context.Background()
	work, err := time.ParseDuration(os.Getenv(workEnv))
	if err != nil {
		panic(err)
	}
	b, err := bus.Connect(ctx, bus.Config{URL: url, Name: "enricher", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		panic(err)
	}
	c, err := b.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Enricher, MaxInFlight: 8}, func(ctx context.Context, w *bus.Work) {
		_, _ = fmt.Fprintln(os.Stdout, "begun", w.Delivery)
		select {
		case <-time.After(work):
		case <-ctx.Done():
		}
		edited := append(bytes.TrimSuffix(bytes.Clone(w.Body), []byte("}")), addedMember...)
		if err := w.Forward(ctx, edited); err != nil {
			panic(err)
		}
	})
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	now, cancel := context.WithCancel(ctx)
	cancel()
	_ = c.Stop(now) // what it works on is lost, as the test wants it
	_ = b.Close(ctx)
}

// enricher is a process of an enricher.
type enricher struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // what it says
}

func startEnricher(t *testing.T, url string, work time.Duration) *enricher {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	e := &enricher{t: t, cmd: exec.Command(self), lines: make(chan string, 8)}
	e.cmd.Env = append(os.Environ(), enricherEnv+"="+url, workEnv+"="+work.String())
	e.cmd.Stderr = os.Stderr
	in, err := e.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := e.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, e.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			e.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-read
		_ = e.cmd.Wait() // it may have been killed
	})
	e.says("ready")
	return e
}

func (e *enricher) says(line string) {
	e.t.Helper()
	require.Equal(e.t, line, await.Value(e.t, e.lines))
}

// R-402, delivery rules 2 and 3: a stage that works for longer than a request may wait for a worker is waited for, and so is the one that takes over
// when its process is killed. What it adds to the body is in it once.
func TestStageThatWorksLongerThanTheQueueTimeout(t *testing.T) {
	t.Parallel()
	const (
		queue = 4 * time.Second
		work  = queue + topology.AckWait // when nothing was heard of it, the ingress would have given up by then
	)
	for name, killed := range map[string]bool{"alive": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.StartListening(t)
			g := setupOn(t, server, func(c *ingress.Config) {
				c.Models, c.Stages, c.QueueTimeout = []ingress.Model{{ID: "m"}}, []contract.Stage{contract.StageAnalyzed}, queue
			})
			bodies := make(chan string, 8)
			g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
				bodies <- string(r.work.Body)
				echo(ctx, r)
			})
			first := work
			if killed {
				first = time.Hour
			}
			e := startEnricher(t, server.ClientURL(), first)
			const body = `{"model":"m","has_search":true,"n":1.0,"messages":[{"role":"user","content":"hi"}]}`
			answers := make(chan answer, 1)
			begun := time.Now()
			go func() {
				a, err := g.try(context.WithoutCancel(t.Context()), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
				}
				answers <- a
			}()
			e.says("begun 1")
			if killed {
				second := startEnricher(t, server.ClientURL(), work)
				require.NoError(t, e.cmd.Process.Kill())
				second.says("begun 2")
			}
			a := await.Value(t, answers)
			require.Equal(t, http.StatusOK, a.StatusCode, a.body)
			require.Equal(t, answerJSON, a.body)
			require.Greater(t, time.Since(begun), work)
			require.Equal(t, strings.TrimSuffix(body, "}")+addedMember, await.Value(t, bodies))
			require.Empty(t, bodies, "it is called once")
		})
	}
}
