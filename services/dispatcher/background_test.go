package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fakellm"
)

// askBackground hands over a request that no ingress owns.
func (p *pipeline) askBackground(rid, body string) {
	p.t.Helper()
	p.ask(rid, body, func(r *contract.Request) {
		r.Ingress, r.Background, r.StartBy = "", true, time.Now().Add(time.Hour)
		require.NoError(p.t, p.bus.Record(p.t.Context(), r, nil))
	})
}

// recorded gives a recorded answer when it has ended.
func (p *pipeline) recorded(rid string) (body string, end contract.End) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testWait)
	defer cancel()
	r := p.bus.Replay(rid)
	defer r.Close()
	for {
		piece, err := r.Next(ctx)
		if errors.Is(err, bus.ErrReplayed) {
			return body, end
		}
		require.NoError(p.t, err)
		for f, err := range contract.Frames(piece.Frames) {
			require.NoError(p.t, err)
			switch f.Kind {
			case contract.FrameHead:
			case contract.FrameData:
				body += string(f.Payload)
			case contract.FrameEnd:
				end, err = contract.ParseEnd(f.Payload)
				require.NoError(p.t, err)
			}
		}
	}
}

// answering waits until content of a recorded answer has come.
func (p *pipeline) answering(rid string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testWait)
	defer cancel()
	r := p.bus.Replay(rid)
	defer r.Close()
	for {
		piece, err := r.Next(ctx)
		require.NoError(p.t, err)
		if piece.State == bus.RecordingAnswering {
			return
		}
	}
}

// an answer that no ingress owns is the same as any other, but for where it goes.
func TestBackgroundAnswer(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.oneUpstream(""))
	used := map[string]contract.End{"whole": {Prompt: 3, Completion: 2, Total: 5}} // the stream does not tell
	for name, body := range map[string]string{"whole": plainBody, "streamed": streamBody} {
		p.ask(name, body)
		want, rid := p.await(name), "background-"+name
		p.askBackground(rid, body)
		got, end := p.recorded(rid)
		require.Equal(t, want.body, got)
		u := p.facts.await(rid)
		require.Equal(t, contract.End{Outcome: contract.OutcomeSuccess, Prompt: used[name].Prompt, Completion: used[name].Completion, Total: used[name].Total}, end)
		require.Equal(t, "success", u.Status)
		require.Len(t, u.Attempts, 1)
	}
	p.settled()
	require.Empty(t, p.now("background-streamed"), "nothing of it is sent to an ingress")
}

// a dispatcher that stops before content has come hands the request to another one; what it has begun it ends as failed.
func TestBackgroundAnswerOfAStoppingDispatcher(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]int{"before content": 0, "after content": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			p.upstream.Queue(fakellm.Stream("one ", "two ", "three").First(begun, fakellm.Hang))
			first := p.start("d1", p.oneUpstream(""))
			p.askBackground("r", streamBody)
			p.upstream.AwaitCount(t, 1)
			if begun > 0 {
				p.answering("r")
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			require.Error(t, first.Stop(over))
			p.start("d2", p.oneUpstream(""))
			body, end := p.recorded("r")
			if begun > 0 {
				require.Contains(t, body, "one ")
				require.NotContains(t, body, "[DONE]")
				require.Equal(t, contract.End{Outcome: contract.OutcomeError}, end)
				return
			}
			require.Contains(t, body, "[DONE]")
			require.Equal(t, contract.End{Outcome: contract.OutcomeSuccess}, end)
			u := p.facts.await("r")
			require.Equal(t, "success", u.Status)
			require.Len(t, u.Attempts, 1, "the first worker is not lost (R-670)")
		})
	}
}

// whoever cancels a recorded answer ends the upstream call.
func TestBackgroundAnswerIsCancelled(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.upstream.Queue(fakellm.Stream("one ", "two").First(2, fakellm.Hang))
	p.start("d", p.oneUpstream(""))
	p.askBackground("r", streamBody)
	p.answering("r")
	require.NoError(t, p.bus.CancelRecorded(t.Context(), "r"))
	require.Equal(t, "cancelled", p.facts.await("r").Status)
	body, end := p.recorded("r")
	require.Contains(t, body, "one ")
	require.Equal(t, contract.End{Outcome: contract.OutcomeCancelled, Reason: contract.ReasonCancelled}, end)
	p.upstream.Await(t, func(r []fakellm.Request) bool { return !r[0].Left.IsZero() })
}
