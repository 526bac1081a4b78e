package fakellm_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// post sends one request and reads its answer.
func post(ctx context.Context, s *fakellm.Server, body string) (status int, header http.Header, answer string, err error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/chat/completions?x=1", strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Authorization", "Bearer k1")
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(data), err
}

func TestAnswersComeFromTheQueueThenTheFunction(t *testing.T) {
	t.Parallel()
	s := fakellm.Start(t, fakellm.JSON(http.StatusTeapot, `{"a": 1}`))
	s.Handle(fakellm.Talk("hello world"))

	status, _, body, err := post(t.Context(), s, `{"model":"m"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, status)
	require.Equal(t, `{"a": 1}`, body)

	_, header, body, err := post(t.Context(), s, `{"model":"m","stream":true}`)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", header.Get("Content-Type"))
	require.Equal(t, 5, strings.Count(body, "data: "))
	require.True(t, strings.HasSuffix(body, "data: [DONE]\n\n"))

	seen := s.Requests()
	require.Len(t, seen, 2)
	require.Equal(t, "/v1/chat/completions?x=1", seen[0].Path)
	require.Equal(t, "k1", seen[0].Key())
	require.Equal(t, "m", seen[0].Model())
	require.False(t, seen[0].Streams())
	require.True(t, seen[1].Streams())
	require.True(t, seen[1].Left.IsZero())
}

func TestBrokenEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer fakellm.Answer
		early  bool // the request itself fails
		check  func(error) bool
	}{
		"cut in the body":   {answer: fakellm.Stream("a", "b").First(2, fakellm.Cut), check: func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"reset in the body": {answer: fakellm.Stream("a", "b").First(2, fakellm.Reset), check: func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		"reset at once":     {answer: fakellm.Abort(), early: true, check: func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }},
		"raw bytes":         {answer: fakellm.Answer{Raw: []byte("HTTP/1.1 nonsense\r\n\r\n")}, early: true, check: func(err error) bool { return strings.Contains(err.Error(), "malformed") }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakellm.Start(t, tt.answer)
			status, _, _, err := post(t.Context(), s, `{}`)
			require.Equal(t, tt.early, status == 0)
			require.Error(t, err)
			require.True(t, tt.check(err), "%v", err)
		})
	}
}

func TestTheClientLeaves(t *testing.T) {
	t.Parallel()
	s := fakellm.Start(t, fakellm.NoAnswer())
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		if _, _, _, err := post(ctx, s, `{}`); !errors.Is(err, context.Canceled) {
			t.Errorf("unexpected end: %v", err)
		}
	})
	s.AwaitCount(t, 1)
	require.Equal(t, 1, s.Active())
	cancel()
	calling.Wait()
	seen := s.Await(t, func(r []fakellm.Request) bool { return !r[0].Left.IsZero() })
	require.Equal(t, seen[0].Ended, seen[0].Left)
	require.Equal(t, 1, s.MaxActive())
}

func TestChunksArriveAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := fakellm.Start(t, fakellm.Stream("a", "b").First(2, fakellm.Hang))
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader(`{"stream":true}`))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // only read
	buf, seen := make([]byte, 4096), ""
	for !strings.Contains(seen, `"content":"a"`) {
		n, err := resp.Body.Read(buf)
		require.NoError(t, err)
		seen += string(buf[:n])
	}
	require.Equal(t, 1, s.Active())
}

func TestEveryRequestIsCounted(t *testing.T) {
	t.Parallel()
	s := fakellm.Start(t)
	s.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Chat("x").After(100 * time.Millisecond) })
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			status, _, _, err := post(t.Context(), s, `{}`)
			if err != nil || status != http.StatusOK {
				t.Errorf("unexpected answer: %v", err)
			}
		})
	}
	calling.Wait()
	require.Len(t, s.Requests(), 8)
	require.Greater(t, s.MaxActive(), 1)
}
