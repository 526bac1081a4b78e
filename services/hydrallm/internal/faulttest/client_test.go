package faulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// outcome is what became of a question.
type outcome string

// Outcomes.
const (
	complete outcome = "complete"
	broken   outcome = "broken off" // a stream that ended with an error event
	refused  outcome = "refused"    // an error before any answer
	left     outcome = "left"       // the client did not wait
)

// result is the end of a question.
type result struct {
	*question
	outcome outcome
	left    time.Time // when the client had left, zero if it did not
}

// longest is how long a client waits that wants its answer; the limits of the gateway end it long before.
const longest = testWait

// pause is what a slow client takes between two reads.
const pause = 2 * time.Millisecond

var errFull = errors.New("client has read as much as it wants")

// ask puts one question to the gateway. The error says what is wrong with the answer.
func ask(ctx context.Context, client *http.Client, url string, q *question) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if q.behaviour == leavesAfterTime {
		ctx, cancel = context.WithTimeout(ctx, q.patience)
		defer cancel()
	}
	status, header, body, err := exchange(ctx, client, url, q)
	switch {
	case errors.Is(err, errFull), q.behaviour == leavesAfterTime && errors.Is(err, context.DeadlineExceeded):
		return result{question: q, outcome: left, left: time.Now()}, nil
	case err != nil:
		return result{}, fmt.Errorf("reading the answer, %d bytes so far: %w", len(body), err)
	}
	out, err := q.judge(status, header, body)
	return result{question: q, outcome: out}, err
}

func exchange(ctx context.Context, client *http.Client, url string, q *question) (status int, header http.Header, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(q.body()))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Content-Type", contentJSON)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	var text strings.Builder
	_, err = io.Copy(&text, &appetite{r: resp.Body, q: q, left: q.appetite})
	return resp.StatusCode, resp.Header, text.String(), err
}

// appetite reads like the client of a question.
type appetite struct {
	r    io.Reader
	q    *question
	left int
}

func (a *appetite) Read(p []byte) (int, error) {
	switch a.q.behaviour {
	case leavesAfterBytes:
		if a.left == 0 {
			return 0, errFull
		}
		n, err := a.r.Read(p[:min(len(p), a.left)])
		a.left -= n
		return n, err
	case readsSlowly:
		<-time.After(pause)
		return a.r.Read(p[:min(len(p), 16<<10)])
	case stays, leavesAfterTime:
	}
	return a.r.Read(p)
}
