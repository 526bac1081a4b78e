package dispatcher

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/openai"
)

const (
	// probeQuestion is what models are asked. A model that thinks first may have spent the tokens before it says anything.
	probeQuestion = `{"messages":[{"role":"user","content":"Reply with the word ok."}],"stream":true,"max_tokens":16}`

	modelsAtOnce = 4
	maxProbe     = 1 << 20 // bytes that are read of an answer
)

// askModels asks models for an answer, with the first key that the provider takes.
func (e *examiner) askModels(ctx context.Context) {
	key, ok := e.goodKey()
	if !ok || e.how.Questions == NoQuestions || config.Dialects[e.provider.Dialect].Chooses {
		return
	}
	models := e.questioned()
	e.found.Answers = make([]ExaminedAnswer, len(models))
	turn := make(chan struct{}, modelsAtOnce)
	var asking sync.WaitGroup
	for i, u := range models {
		asking.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			e.found.Answers[i] = e.ask(ctx, u, key)
		})
	}
	asking.Wait()
}

// goodKey is the first key that the provider took, or else the first that it did not refuse for its own sake: some providers have no list.
func (e *examiner) goodKey() (key string, ok bool) {
	var unclear []int
	for i, k := range e.found.Keys {
		switch class := k.Outcome.Class; {
		case class == ClassSuccess:
			return e.keyAt(i), true
		case class == ClassModel, class == Class(classify.Client):
			unclear = append(unclear, i)
		}
	}
	if len(unclear) == 0 {
		return "", false
	}
	return e.keyAt(unclear[0]), true
}

func (e *examiner) keyAt(i int) string {
	if i >= len(e.provider.Keys) {
		return ""
	}
	return e.provider.Keys[i].Value.Reveal()
}

// questioned are the models to ask, as upstreams of the configuration where they are ones.
func (e *examiner) questioned() (list []config.Upstream) {
	var others []config.Upstream
	for _, u := range e.upstreams() {
		switch {
		case !discover.Chats(u.Model) || u.NativeCompletions():
		case e.how.Questions == AllModels || slices.Contains(e.found.Missing, u.Model):
			list = append(list, u)
		default:
			others = append(others, u)
		}
	}
	if len(others) > 0 {
		return append(list, others[0])
	}
	if len(list) == 0 {
		if m, ok := e.routedModel(); ok {
			list = append(list, config.Upstream{Provider: e.provider.ID, Model: m})
		}
	}
	return list
}

// routedModel is what automatic routing would ask for.
func (e *examiner) routedModel() (string, bool) {
	book := modelindex.NewBook()
	if e.found.Listed {
		book = modelindex.NewBook(e.listing)
	}
	if e.provider.Agent() {
		return discover.Preferred(e.listing.Models, "")
	}
	m, ok := book.Default(e.provider.ID, modelindex.Defaults(e.provider.DefaultModels), false, func(m modelindex.Model) bool { return m.Embedding })
	return m.ID, ok
}

// ask has a model stream an answer.
func (e *examiner) ask(ctx context.Context, u config.Upstream, key string) ExaminedAnswer {
	ctx, cancel := context.WithTimeout(ctx, e.how.AnswerLimit)
	defer cancel()
	p, found := e.provider, ExaminedAnswer{Model: u.Model}
	client := e.client.call()
	begin := time.Now()
	end := func(v classify.Verdict) ExaminedAnswer {
		found.Outcome = client.outcome(v, time.Since(begin))
		return found
	}
	body, err := probeBody(p, u)
	if err != nil {
		return end(classify.Verdict{Class: classify.Client, Reason: "the patches of the configuration can't be merged"})
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	for name, value := range p.Headers {
		header.Set(name, value.Reveal())
	}
	resp, err := e.dialects.of(p, true).Chat(ctx, upstream.Call{
		URL: p.URL, Key: key, Header: header, Body: body, Stream: true, HeadersTimeout: e.how.AnswerLimit, RequestTimeout: e.how.AnswerLimit,
	})
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return end(classify.Verdict{Class: classify.Client, Reason: bad.Code})
	}
	if err != nil {
		return end(classify.Transport(ctx, err))
	}
	defer resp.Close()
	client.saw(resp.Response)
	return end(found.read(ctx, resp, sourceOf(p).Vendor, begin))
}

// probeBody is the question as the dispatcher would send it to the upstream.
func probeBody(p config.Provider, u config.Upstream) ([]byte, error) {
	patch, err := openai.CompilePatch(p.Patch, u.Patch)
	if err != nil {
		return nil, err
	}
	defaults, err := openai.CompilePatch(p.Defaults, u.Defaults)
	if err != nil {
		return nil, err
	}
	r, err := openai.ScanRequest([]byte(probeQuestion))
	if err != nil {
		return nil, err
	}
	return r.AppendUpstream(nil, openai.Rewrite{Model: u.Model, Defaults: defaults, Patch: patch}), nil
}

// read reads an answer to its end.
func (a *ExaminedAnswer) read(ctx context.Context, resp *dialect.Response, vendor string, begin time.Time) classify.Verdict {
	body := io.LimitReader(resp.Body, maxProbe)
	judge := func(data []byte, event bool) classify.Verdict {
		return classify.Of(classify.Answer{Provider: vendor, Status: resp.Status, Header: resp.Header, Body: data, Event: event})
	}
	kind := dialect.JSON
	if resp.Status/100 == 2 {
		var err error
		if kind, err = resp.Sniff(); err != nil {
			return classify.Transport(ctx, err)
		}
		body = io.LimitReader(resp.Body, maxProbe)
	}
	if kind != dialect.Events {
		data, err := io.ReadAll(body)
		if err != nil {
			return classify.Transport(ctx, err)
		}
		v := judge(data, false)
		var chunk answer.Chunk
		if a.Whole = !v.Failed(); a.Whole && !resp.Whole(&chunk, data) && !chunk.Valid {
			return classify.Ended(classify.ErrEmptyAnswer)
		}
		return v
	}
	events, output, finished := resp.Source(openai.NewReader(body, maxProbe), new(answer.Reader)), false, false
	for {
		c, err := events.Next()
		switch {
		case errors.Is(err, io.EOF) && finished:
			a.Silent = !output
			return classify.Verdict{Class: classify.Success}
		case errors.Is(err, io.EOF):
			return classify.Ended(classify.ErrTruncated)
		case err != nil:
			return classify.Transport(ctx, err)
		case c.Kind == answer.Problem:
			if v := judge(c.Data, true); v.Failed() {
				return v
			}
			return classify.Ended(classify.ErrTruncated)
		case c.Kind == answer.Done:
			finished = true
		}
		if c.Kind == answer.Piece && a.FirstByte == 0 {
			a.FirstByte = time.Since(begin)
		}
		for i := range c.Choices {
			output = output || c.Choices[i].HasOutput()
			finished = finished || c.Choices[i].Finished()
		}
	}
}
