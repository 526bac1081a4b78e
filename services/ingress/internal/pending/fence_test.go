package pending_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/contract"
)

// question is that of another worker about a delivery to the dispatcher.
func question(delivery uint64) contract.FenceQuestion {
	return contract.FenceQuestion{RequestID: "r", At: at(delivery), Worker: "second"}
}

// without is the question after the one who asks has found out that a worker does not have the request.
func without(q contract.FenceQuestion, gone string) contract.FenceQuestion {
	q.Gone = gone
	return q
}

func mayRun(delivery uint64, lost ...uint64) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceRun, Delivery: delivery, Lost: lost}
}

func stop(lost ...uint64) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceStop, Lost: lost}
}

func wait(worker string) contract.FenceAnswer {
	return contract.FenceAnswer{Decision: contract.FenceWait, Worker: worker}
}

// Delivery rule 3, R-010, R-485: another delivery may run only while nothing is committed and no worker has the request; then it fences those before
// it. A worker that was heard of lately is alive, unless it turns out to be gone.
func TestFence(t *testing.T) {
	t.Parallel()
	const lately, long, longer = time.Second, 6 * time.Second, 16 * time.Second // against the lease of 5 s and the silence of 15 s
	session := func(delivery uint64) contract.FenceQuestion {
		return contract.FenceQuestion{RequestID: "r", At: contract.Position{Stage: contract.StageReceived, Delivery: delivery}, Worker: "second"}
	}
	tests := map[string]struct {
		before []any
		after  time.Duration // how long ago that was
		asked  contract.FenceQuestion
		want   contract.FenceAnswer
		err    error // of the request afterwards
	}{
		"nothing came": {nil, long, question(2), mayRun(2, 1), nil},
		"nothing came, and the server has forgotten":       {nil, long, question(1), mayRun(1), nil},
		"a worker is alive":                                {[]any{working()}, lately, question(2), wait(first), nil},
		"a worker is alive and late":                       {[]any{working()}, long, question(2), wait(first), nil},
		"a worker is alive, and the server has forgotten":  {[]any{working()}, long, question(1), wait(first), nil},
		"a worker is gone":                                 {[]any{working()}, lately, without(question(2), first), mayRun(2, 1), nil},
		"a worker is gone, and the server has forgotten":   {[]any{working()}, lately, without(question(1), first), mayRun(2, 1), nil},
		"another worker is gone":                           {[]any{working()}, lately, without(question(2), "other"), wait(first), nil},
		"a worker is silent":                               {[]any{working()}, longer, question(2), mayRun(2, 1), nil},
		"a worker waits for the client":                    {[]any{head(1), working()}, long, question(2), wait(first), nil},
		"a worker sends, but has not shown itself":         {[]any{head(1)}, lately, question(2), wait(""), nil},
		"it did so before the lease was over":              {[]any{head(1)}, long, question(2), stop(1), pending.ErrDied},
		"a worker that answered is gone":                   {[]any{head(1), working()}, lately, without(question(2), first), stop(1), pending.ErrDied},
		"the answer is complete":                           {[]any{head(1), end(1, 1)}, lately, question(2), stop(1), nil},
		"the answer has failed":                            {[]any{data(1, 0, "x")}, lately, question(2), stop(1), pending.ErrMalformed},
		"an earlier stage was alive":                       {[]any{busy(contract.StageReceived, 3)}, lately, question(2), mayRun(2, 1), nil},
		"it waits for this stage":                          {[]any{queued(contract.StageEnriched)}, lately, question(2), mayRun(2, 1), nil},
		"a worker has handed it back":                      {[]any{working(), back(working())}, lately, question(2), mayRun(2), nil},
		"it said so twice":                                 {[]any{working(), back(working()), back(working())}, lately, question(2), mayRun(2), nil},
		"it did so before anything was heard":              {[]any{back(working())}, lately, question(2), mayRun(2), nil},
		"it did so when a report was under way":            {[]any{back(working()), working()}, lately, question(2), mayRun(2), nil},
		"another one has it since":                         {[]any{busy(contract.StageEnriched, 2), back(working())}, lately, question(3), wait(first), nil},
		"the one of the stage before handed it back":       {[]any{working(), back(busy(contract.StageReceived, 1))}, lately, question(2), wait(first), nil},
		"a later one handed it back, and one is not known": {[]any{back(busy(contract.StageEnriched, 2))}, lately, question(3), mayRun(3, 1), nil},
		"of the stage before: a worker is alive":           {[]any{busy(contract.StageReceived, 1)}, lately, session(2), wait(first), nil},
		"of the stage before: a worker is gone":            {[]any{busy(contract.StageReceived, 1)}, lately, without(session(2), first), mayRun(2, 1), nil},
		"of the stage before: it is forwarded":             {[]any{queued(contract.StageEnriched)}, lately, session(2), stop(), nil},
		"of the stage before: a later stage has begun":     {[]any{working()}, longer, session(2), stop(1), nil},
		"of the stage before: a later stage has answered":  {[]any{head(1)}, long, session(2), stop(1), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup()
				b.run(t)
				b.take(tt.before...)
				<-time.After(tt.after)
				require.Equal(t, tt.want, b.table.Fence(tt.asked))
				if tt.err != nil {
					_, err := read(b.request)
					require.ErrorIs(t, err, tt.err)
					require.Positive(t, b.cancels.count())
				}
				b.table.Fail(b.request, pending.ErrStopping)
			})
		})
	}
	unknown := question(2)
	unknown.RequestID = "unknown"
	require.Equal(t, stop(), setup().table.Fence(unknown), "nobody waits")
}

// once a redelivery may run, the frames and signs of the lost delivery count no more, and its worker, if it lives after all, is told to stop.
func TestFenceExcludesOlder(t *testing.T) {
	t.Parallel()
	b := setup()
	b.take(working())
	second := without(question(2), first)
	require.Equal(t, mayRun(2, 1), b.table.Fence(second))
	require.Equal(t, mayRun(2, 1), b.table.Fence(second), "the question may come twice")
	require.Equal(t, mayRun(2, 1), b.table.Fence(question(2)), "however it is put")
	b.take(head(1), data(1, 1, "old"))

	third := question(2) // the server has forgotten the delivery before, so that its count says nothing
	third.Worker = "third"
	require.Equal(t, wait(""), b.table.Fence(third))
	require.True(t, b.table.Alive("second", busy(contract.StageEnriched, 2)).Fine())
	require.Equal(t, wait("second"), b.table.Fence(third))
	require.Equal(t, mayRun(3, 1, 2), b.table.Fence(without(third, "second")))
	require.True(t, b.table.Alive("third", busy(contract.StageEnriched, 3)).Fine())
	require.True(t, b.table.Alive(first, working()).Unwanted)
	require.Equal(t, wait("third"), b.table.Fence(without(question(2), first)))

	b.take(head(2), head(3), data(2, 1, "old"), data(3, 1, "new"), end(3, 2))
	got, err := read(b.request)
	require.NoError(t, err)
	require.Equal(t, "new", got)
}

// what was handed back is not lost, however often; a worker that dies in between is.
func TestHandedBackIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup()
	b.take(working())
	for n := uint64(1); n < 9; n++ {
		b.take(back(busy(contract.StageEnriched, n)))
		require.Equal(t, mayRun(n+1), b.table.Fence(question(n+1)))
		require.True(t, b.table.Alive(first, busy(contract.StageEnriched, n+1)).Fine())
	}
	require.Equal(t, mayRun(10, 9), b.table.Fence(without(question(10), first)))
	b.take(back(busy(contract.StageEnriched, 9)), back(busy(contract.StageEnriched, 10)))
	require.Equal(t, mayRun(11, 9), b.table.Fence(question(11)))

	b.take(head(11), back(busy(contract.StageEnriched, 11)), end(11, 1))
	_, err := read(b.request)
	require.NoError(t, err, "an answer that has begun is not given back")
	b.table.HandedBack(contract.Sign{Position: at(1), RequestID: "unknown"})
}

// who reports on a request that nobody awaits is told so; one that has just ended needs no word.
func TestSignsOfUnwantedRequests(t *testing.T) {
	t.Parallel()
	b := setup()
	require.True(t, b.table.Alive(first, contract.Sign{Position: at(1), RequestID: "unknown"}).Unwanted)
	require.True(t, b.table.Alive(first, working()).Fine())
	b.take(head(1), end(1, 1))
	require.True(t, b.table.Alive(first, working()).Fine())
	other := b.table.Add("other", b.client, time.Now())
	b.table.Fail(other, pending.ErrGone)
	require.True(t, b.table.Alive(first, contract.Sign{Position: at(1), RequestID: "other"}).Unwanted)
}
