package query_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ query.Bus = (*bus.Bus)(nil)

type (
	question struct{ N int }
	answer   struct{ Twice int }
)

var (
	double  = query.Op[question, answer]{Service: "svc", Name: "double", Limit: time.Minute}
	errOdd  = &fault.Fault{Kind: fault.Conflict, Code: "odd", Message: "the number is odd", Param: "N"}
	nothing = query.Op[query.None, query.Done]{Service: "svc", Name: "nothing", Limit: time.Minute}
)

// setup gives a bus on which the named instances double even numbers.
func setup(t *testing.T, instances ...string) *bus.Bus {
	t.Helper()
	b := bustest.Start(t)
	for i, instance := range instances {
		h := query.Handlers{}
		double.Handle(h, func(_ context.Context, q question) (answer, error) {
			switch {
			case q.N == 0:
				return answer{}, errors.New("secret detail")
			case q.N%2 != 0:
				return answer{}, errOdd
			}
			return answer{2*q.N + i}, nil
		})
		nothing.Handle(h, func(context.Context, query.None) (query.Done, error) { return query.Done{Status: query.Success}, nil })
		s, err := b.Serve(t.Context(), bus.QueryConfig{Service: "svc", Instance: instance, Handlers: h})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	}
	return b
}

// Question, answer and declared faults are the same on both sides.
func TestAsk(t *testing.T) {
	t.Parallel()
	b := setup(t, "a")
	got, err := double.Ask(t.Context(), b, question{21 * 2})
	require.NoError(t, err)
	require.Equal(t, answer{84}, got)
	raw, err := double.AskRaw(t.Context(), b, question{2})
	require.NoError(t, err)
	require.JSONEq(t, `{"Twice":4}`, string(raw))
	done, err := nothing.Ask(t.Context(), b, query.None{})
	require.NoError(t, err)
	require.Equal(t, query.Success, done.Status)

	_, err = double.Ask(t.Context(), b, question{3})
	require.ErrorIs(t, err, errOdd)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, errOdd, f)

	_, err = double.Ask(t.Context(), b, question{0})
	require.Equal(t, fault.New(fault.Internal, "Internal server error"), err)
}

// What one side can't read, and nobody to ask, is a fault as well.
func TestAskFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := double.Ask(t.Context(), b, question{2})
	require.ErrorIs(t, err, bus.ErrNoService)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, fault.Unavailable, f.Kind)
	require.Equal(t, "The svc service does not answer", f.Message)
	require.NotZero(t, f.RetryAfter)

	b = setup(t, "a")
	other := query.Op[string, answer]{Service: "svc", Name: "double", Limit: time.Minute}
	_, err = other.Ask(t.Context(), b, "many")
	require.ErrorIs(t, err, fault.New(fault.Invalid, ""))
	odd := query.Op[question, []string]{Service: "svc", Name: "double", Limit: time.Minute}
	_, err = odd.Ask(t.Context(), b, question{2})
	require.ErrorIs(t, err, fault.New(fault.Internal, ""))
}

// Each instance answers for itself; one that is gone is noticed at once.
func TestAskEach(t *testing.T) {
	t.Parallel()
	b := setup(t, "a", "b", "c")
	got := double.AskEach(t.Context(), b, []string{"c", "gone", "a"}, question{2})
	require.Len(t, got, 3)
	require.Equal(t, query.Reply[answer]{Instance: "c", Answer: answer{6}}, got[0])
	require.Equal(t, "gone", got[1].Instance)
	require.ErrorIs(t, got[1].Err, bus.ErrNoService)
	require.Equal(t, query.Reply[answer]{Instance: "a", Answer: answer{4}}, got[2])
	require.Empty(t, double.AskEach(t.Context(), b, nil, question{2}))
	for _, r := range double.AskEach(t.Context(), b, []string{"a", "b"}, question{1}) {
		require.ErrorIs(t, r.Err, errOdd)
	}
}

// silent never answers.
type silent struct{ query.Bus }

func (silent) Query(ctx context.Context, _, _ string, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The limit of an operation holds for who asks and for who answers.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := double.Ask(t.Context(), silent{}, question{2})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, fault.New(fault.Unavailable, ""))
		require.Equal(t, time.Minute, time.Since(begun))

		h := query.Handlers{}
		double.Handle(h, func(ctx context.Context, _ question) (answer, error) {
			<-ctx.Done()
			return answer{}, ctx.Err()
		})
		begun = time.Now()
		_, err = h["double"](t.Context(), []byte(`{"N":2}`))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begun))
	})
}
