package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/shared/fault"
	"hydrallm/shared/subject"
)

// ErrNoService says that no instance of the queried service is running.
var ErrNoService = errors.New("service is not running")

// ErrBadAnswer says that a service refused a query in a form that is not known here.
var ErrBadAnswer = errors.New("refusal can't be read")

// QueryHandler answers one operation. A *fault.Fault goes back to the caller as it is, but for its cause, which is logged when the service is to
// blame; any other error becomes an internal one. The context ends when the service must stop.
type QueryHandler = func(ctx context.Context, question []byte) (answer []byte, err error)

// QueryConfig says who answers.
type QueryConfig struct {
	Service  string                  // such as "dispatcher"; one NATS subject token
	Instance string                  // unique among the instances of the service; one NATS subject token
	Version  string                  // of the program; what is no semantic version shows as 0.0.0
	Handlers map[string]QueryHandler // by operation
}

// maxQueries bounds the queries that one instance answers at the same time; more wait in its connection.
const maxQueries = 64

// Service answers queries until it is stopped.
type Service struct {
	bus     *Bus
	cfg     QueryConfig
	svc     micro.Service
	cancel  context.CancelFunc // of the queries under way
	free    chan struct{}      // has room for the queries that may run
	running sync.WaitGroup

	mu      sync.Mutex
	stopped bool // nothing is added to running any more
}

// Serve answers the operations of a service through NATS micro, so that the server's tools list it. Instances of one service share its queries;
// those that are addressed to this instance come here alone. Operations run at the same time.
func (b *Bus) Serve(ctx context.Context, cfg QueryConfig) (*Service, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	svc, err := micro.AddService(b.nc, micro.Config{Name: cfg.Service, Version: microVersion(cfg.Version), Description: "HydraLLM " + cfg.Service})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("registering service %s: %w", cfg.Service, err)
	}
	s := &Service{bus: b, cfg: cfg, svc: svc, cancel: cancel, free: make(chan struct{}, maxQueries)}
	if err := s.listen(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("registering service %s: %w", cfg.Service, err), s.Stop(ctx))
	}
	return s, nil
}

func (s *Service) listen(ctx context.Context) error {
	for op, handler := range s.cfg.Handlers {
		h := micro.HandlerFunc(func(req micro.Request) { s.take(ctx, op, handler, req) })
		if err := s.svc.AddEndpoint(op, h, micro.WithEndpointSubject(subject.Query(s.cfg.Service, op))); err != nil {
			return fmt.Errorf("adding %s: %w", op, err)
		}
	}
	own := micro.HandlerFunc(func(req micro.Request) {
		op := subject.Last(req.Subject())
		handler := s.cfg.Handlers[op]
		if handler == nil {
			handler = unknown
		}
		s.take(ctx, op, handler, req)
	})
	err := s.svc.AddEndpoint("instance", own, micro.WithEndpointSubject(subject.QueryInstance(s.cfg.Service, s.cfg.Instance, "*")),
		micro.WithEndpointQueueGroupDisabled())
	if err != nil {
		return fmt.Errorf("adding the instance: %w", err)
	}
	// The subscriptions are known to the server before a question can be asked.
	return subscribed(s.bus.nc)
}

// take begins to answer a query. It waits while as many as may be are being answered.
func (s *Service) take(ctx context.Context, op string, handler QueryHandler, req micro.Request) {
	s.free <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		<-s.free
		s.passOn(ctx, op, req)
		return
	}
	s.running.Go(func() {
		defer func() { <-s.free }()
		ctx, end := querySpan(tracedBy(ctx, nats.Header(req.Headers())), req.Subject(), trace.SpanKindServer)
		answer, err := handler(ctx, req.Data())
		end(err)
		s.respond(ctx, op, req, answer, err)
	})
}

func unknown(context.Context, []byte) ([]byte, error) {
	return nil, fault.New(fault.NotFound, "The service has no such operation")
}

// respond answers by itself and not through the request: NATS micro reads what a response did when the handler returns, which is too early.
func (s *Service) respond(ctx context.Context, op string, req micro.Request, answer []byte, err error) {
	if limit := s.bus.nc.MaxPayload(); err == nil && int64(len(answer)) > limit {
		err = fmt.Errorf("the answer has %d bytes, and a message at most %d", len(answer), limit)
	}
	m := &nats.Msg{Subject: req.Reply(), Data: answer}
	if err != nil {
		f := fault.From(err)
		if f.Cause != nil && f.Status() >= http.StatusInternalServerError {
			s.bus.log.ErrorContext(ctx, "answering a query", slog.String("service", s.cfg.Service), slog.String("op", op), slog.Any("error", f))
		}
		m.Header = nats.Header{micro.ErrorCodeHeader: {strconv.Itoa(f.Status())}, micro.ErrorHeader: {string(f.Kind)}}
		if m.Data, err = json.Marshal(f); err != nil {
			s.bus.log.ErrorContext(ctx, "encoding a fault", slog.Any("error", err)) // the asker gets to see that it can't read this
		}
	}
	if err := s.bus.nc.PublishMsg(m); err != nil {
		s.bus.log.WarnContext(ctx, "sending the answer to a query", slog.String("op", op), slog.Any("error", err))
	}
}

// headerStopping marks the answer of an instance to a query that it did not begin with, because it stops.
const headerStopping = "Hydra-Stopping"

// passOn has the asker ask again. The server has been told before that no more is to come here.
func (s *Service) passOn(ctx context.Context, op string, req micro.Request) {
	m := &nats.Msg{Subject: req.Reply(), Header: nats.Header{headerStopping: {"1"}}}
	if err := s.bus.nc.PublishMsg(m); err != nil {
		s.bus.log.WarnContext(ctx, "passing a query on", slog.String("op", op), slog.Any("error", err))
	}
}

// Stop takes no more queries and waits for those under way; when ctx ends, their context does too.
func (s *Service) Stop(ctx context.Context) error {
	if s == nil {
		return nil
	}
	err := s.svc.Stop()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	defer context.AfterFunc(ctx, s.cancel)()
	s.running.Wait()
	s.cancel()
	if err != nil {
		return fmt.Errorf("ending a service: %w", err)
	}
	return nil
}

// Query asks any instance of a service; one that stops before it has begun to answer counts as not running. The error is a *fault.Fault when the service refuses, ErrNoService when none runs.
func (b *Bus) Query(ctx context.Context, service, op string, question []byte) ([]byte, error) {
	return b.query(ctx, subject.Query(service, op), question)
}

// QueryInstance asks one instance of a service. The errors are those of Query.
func (b *Bus) QueryInstance(ctx context.Context, service, instance, op string, question []byte) ([]byte, error) {
	return b.query(ctx, subject.QueryInstance(service, instance, op), question)
}

func (b *Bus) query(ctx context.Context, subj string, question []byte) (answer []byte, err error) {
	ctx, end := querySpan(ctx, subj, trace.SpanKindClient)
	defer func() { end(err) }()
	request := &nats.Msg{Subject: subj, Data: question, Header: nats.Header{}}
	traceContext.Inject(ctx, propagation.HeaderCarrier(request.Header))
	m, err := b.nc.RequestMsgWithContext(ctx, request)
	for err == nil && m.Header.Get(headerStopping) != "" {
		m, err = b.nc.RequestMsgWithContext(ctx, request)
	}
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("querying %s: %w", subj, ErrNoService)
	}
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", subj, err)
	}
	if m.Header.Get(micro.ErrorCodeHeader) == "" {
		return m.Data, nil
	}
	f := &fault.Fault{}
	if err := json.Unmarshal(m.Data, f); err != nil || f.Kind == "" {
		return nil, fmt.Errorf("querying %s: %w", subj, ErrBadAnswer)
	}
	return nil, f
}

// microVersion makes a version that NATS micro accepts.
func microVersion(v string) string {
	var major, minor, patch int
	if n, err := fmt.Sscanf(v, "%d.%d.%d", &major, &minor, &patch); err != nil || n != 3 {
		return "0.0.0"
	}
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}
