package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"hydrallm/shared/subject"
)

// ErrNoService says that no instance of the queried service is running.
var ErrNoService = errors.New("service is not running")

// QueryError is the refusal of a query by its service. Code is an HTTP-like status, Message is safe to show.
type QueryError struct {
	Code    string
	Message string
}

func (e *QueryError) Error() string { return e.Message }

// QueryHandler answers one operation. A *QueryError goes back to the caller as it is; any other error becomes an internal one.
type QueryHandler func(ctx context.Context, data []byte) ([]byte, error)

// Service answers queries until it is stopped.
type Service struct {
	svc    micro.Service
	cancel context.CancelFunc
}

// Serve answers the operations of a service through NATS micro, so that the server's tools list it. Instances of one name share the load.
func (b *Bus) Serve(ctx context.Context, name, version string, ops map[string]QueryHandler) (*Service, error) {
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	svc, err := micro.AddService(b.nc, micro.Config{Name: name, Version: version, Description: "HydraLLM " + name})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("registering service %s: %w", name, err)
	}
	s := &Service{svc: svc, cancel: cancel}
	for op, handler := range ops {
		h := micro.HandlerFunc(func(req micro.Request) { b.answer(runCtx, name, op, handler, req) })
		if err := svc.AddEndpoint(op, h, micro.WithEndpointSubject(subject.Query(name, op))); err != nil {
			return nil, errors.Join(fmt.Errorf("registering %s.%s: %w", name, op, err), s.Stop())
		}
	}
	// The subscriptions are known to the server before a question can be asked.
	if err := b.nc.Flush(); err != nil {
		return nil, errors.Join(fmt.Errorf("registering service %s: %w", name, err), s.Stop())
	}
	return s, nil
}

func (b *Bus) answer(ctx context.Context, name, op string, handler QueryHandler, req micro.Request) {
	data, err := handler(ctx, req.Data())
	if err == nil {
		err = req.Respond(data)
	} else if q, ok := errors.AsType[*QueryError](err); ok {
		err = req.Error(q.Code, q.Message, nil)
	} else {
		b.log.Error("answering a query", slog.String("service", name), slog.String("op", op), slog.Any("error", err))
		err = req.Error("500", "internal error", nil)
	}
	if err != nil {
		b.log.Warn("sending the answer to a query", slog.String("op", op), slog.Any("error", err))
	}
}

// Stop ends the service; queries under way are answered.
func (s *Service) Stop() error {
	if s == nil {
		return nil
	}
	err := s.svc.Stop()
	s.cancel()
	if err != nil {
		return fmt.Errorf("ending a service: %w", err)
	}
	return nil
}

// Query asks a service and decodes its JSON answer into answer. ErrNoService when none runs, *QueryError when it refuses.
func (b *Bus) Query(ctx context.Context, service, op string, question, answer any) error {
	var data []byte
	if question != nil {
		var err error
		if data, err = json.Marshal(question); err != nil {
			return fmt.Errorf("encoding the query %s.%s: %w", service, op, err)
		}
	}
	m, err := b.nc.RequestWithContext(ctx, subject.Query(service, op), data)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("%s: %w", service, ErrNoService)
	}
	if err != nil {
		return fmt.Errorf("querying %s.%s: %w", service, op, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		return &QueryError{Code: code, Message: m.Header.Get(micro.ErrorHeader)}
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("decoding the answer of %s.%s: %w", service, op, err)
	}
	return nil
}
