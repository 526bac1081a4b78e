package sessionwriter

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// what is no whole answer is no summary, and the first failure is what counts.
func TestInquiry(t *testing.T) {
	t.Parallel()
	head := func(status int) contract.Frame {
		return contract.Frame{Kind: contract.FrameHead, Payload: contract.Head{Status: status}.AppendJSON(nil)}
	}
	data := func(text string) contract.Frame {
		return contract.Frame{Kind: contract.FrameData, Payload: []byte(text)}
	}
	end := func(outcome string) contract.Frame {
		return contract.Frame{Kind: contract.FrameEnd, Payload: contract.End{Outcome: outcome}.AppendJSON(nil)}
	}
	for name, tt := range map[string]struct {
		frames []contract.Frame
		fails  bool
	}{
		"whole":            {[]contract.Frame{head(http.StatusOK), data(`{"a":`), data(`1}`), end(contract.OutcomeSuccess)}, false},
		"an error":         {[]contract.Frame{head(http.StatusNotFound), data(`{}`), end(contract.OutcomeError)}, true},
		"no status":        {[]contract.Frame{data(`{}`), end(contract.OutcomeSuccess)}, true},
		"broken off":       {[]contract.Frame{head(http.StatusOK), data(`{}`), end(contract.OutcomeBroken)}, true},
		"no JSON":          {[]contract.Frame{head(http.StatusOK), data(`{`), end(contract.OutcomeSuccess)}, true},
		"a head like that": {[]contract.Frame{{Kind: contract.FrameHead, Payload: []byte("[")}}, true},
		"an end like that": {[]contract.Frame{head(http.StatusOK), data(`{}`), {Kind: contract.FrameEnd, Payload: []byte("[")}}, true},
		"too much":         {[]contract.Frame{head(http.StatusOK), data(strings.Repeat("x", modelAnswer+1))}, true},
		"a gap":            {[]contract.Frame{head(http.StatusOK), {Kind: contract.FrameEnd, Seq: 7}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &inquiry{done: make(chan struct{})}
			m := &modelCompressor{waiting: map[string]*inquiry{"r": q}}
			for i, f := range tt.frames {
				if f.Seq == 0 {
					f.Seq = uint64(i)
				}
				f.Position = contract.Position{Stage: contract.StageEnriched, Delivery: 1}
				m.deliver("r", contract.AppendFrame(nil, f))
				m.deliver("another", contract.AppendFrame(nil, f))
			}
			<-q.done
			require.Equal(t, tt.fails, q.err != nil, "%v", q.err)
			before := q.err
			q.end(errors.New("later"))
			require.Equal(t, before, q.err)
		})
	}
}

// A request whose worker may have died is given up; nobody else is called for it.
func TestInquiryWhoseWorkerIsGone(t *testing.T) {
	t.Parallel()
	q := &inquiry{done: make(chan struct{})}
	m := &modelCompressor{waiting: map[string]*inquiry{"r": q}}
	at := func(rid string, delivery uint64) contract.FenceQuestion {
		return contract.FenceQuestion{RequestID: rid, At: contract.Position{Stage: contract.StageEnriched, Delivery: delivery}}
	}
	require.Equal(t, contract.FenceAnswer{Decision: contract.FenceRun, Delivery: 1}, m.Fence(at("r", 1)))
	require.Equal(t, contract.FenceStop, m.Fence(at("another", 1)).Decision)
	require.False(t, m.Alive("w", contract.Sign{RequestID: "r"}).Unwanted)
	require.True(t, m.Alive("w", contract.Sign{RequestID: "another"}).Unwanted)
	require.Equal(t, contract.FenceStop, m.Fence(at("r", 2)).Decision)
	<-q.done
	require.Error(t, q.err)
}
