// Package query declares the calls that services make to each other and wait for: the operations, their questions and answers, and the faults
// that both sides know. Caller and service share one declaration, so that neither can misname or misread what the other means.
//
// A fault that a service answers with reaches the caller as the *fault.Fault that it is: errors.AsType finds it, and errors.Is knows a declared
// one again. What else goes wrong is a fault of kind fault.Unavailable.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"hydrallm/shared/fault"
)

// Op is one operation of a service. Its question and its answer travel as JSON.
type Op[Question, Answer any] struct {
	Service string        // who answers
	Name    string        // one NATS subject token
	Limit   time.Duration // the longest that an answer may take, for both sides
}

// None is the question of an operation that needs none.
type None struct{}

// Bus carries queries; *bus.Bus is one.
type Bus interface {
	// Query asks any instance of a service. The error is a *fault.Fault when the service refuses.
	Query(ctx context.Context, service, op string, question []byte) ([]byte, error)
	// QueryInstance asks one.
	QueryInstance(ctx context.Context, service, instance, op string, question []byte) ([]byte, error)
}

// Ask asks any instance of the service. The error is a *fault.Fault.
func (o Op[Question, Answer]) Ask(ctx context.Context, b Bus, question Question) (answer Answer, err error) {
	data, err := o.AskRaw(ctx, b, question)
	if err != nil {
		return answer, err
	}
	return answer, o.read(data, &answer)
}

// AskRaw is Ask for a caller that passes the answer on as it is: JSON. The error is a *fault.Fault.
func (o Op[Question, Answer]) AskRaw(ctx context.Context, b Bus, question Question) ([]byte, error) {
	return o.call(ctx, question, func(ctx context.Context, data []byte) ([]byte, error) {
		return b.Query(ctx, o.Service, o.Name, data)
	})
}

// Reply is what one instance says: its answer, or the *fault.Fault in its place.
type Reply[Answer any] struct {
	Instance string
	Answer   Answer
	Err      error
}

// AskEach asks the given instances of the service at the same time and returns when each has answered, in their order. One that is not there any
// more is noticed at once; one that hangs is waited for until Limit.
func (o Op[Question, Answer]) AskEach(ctx context.Context, b Bus, instances []string, question Question) []Reply[Answer] {
	all := make([]Reply[Answer], len(instances))
	var wg sync.WaitGroup
	for i, instance := range instances {
		all[i].Instance = instance
		wg.Go(func() {
			data, err := o.call(ctx, question, func(ctx context.Context, data []byte) ([]byte, error) {
				return b.QueryInstance(ctx, o.Service, instance, o.Name, data)
			})
			if err == nil {
				err = o.read(data, &all[i].Answer)
			}
			all[i].Err = err
		})
	}
	wg.Wait()
	return all
}

// call encodes the question and gives what carry brings back for it.
func (o Op[Question, Answer]) call(ctx context.Context, question Question, carry func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, o.failed(fmt.Errorf("encoding the question: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	answer, err := carry(ctx, data)
	if err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			return nil, f
		}
		return nil, &fault.Fault{
			Kind: fault.Unavailable, Message: "The " + o.Service + " service does not answer", RetryAfter: time.Second, Cause: err,
		}
	}
	return answer, nil
}

func (o Op[Question, Answer]) read(data []byte, answer *Answer) error {
	if err := json.Unmarshal(data, answer); err != nil {
		return o.failed(fmt.Errorf("decoding the answer: %w", err))
	}
	return nil
}

// failed hides what went wrong between the two sides from clients.
func (o Op[Question, Answer]) failed(err error) error {
	return fault.From(fmt.Errorf("%s.%s: %w", o.Service, o.Name, err))
}

// Handlers are the operations that a service answers, by name, in the form that the bus takes.
type Handlers map[string]func(ctx context.Context, question []byte) (answer []byte, err error)

// Handle makes answer the handler of the operation. Its context ends after Limit. A *fault.Fault that it returns reaches the caller.
func (o Op[Question, Answer]) Handle(h Handlers, answer func(context.Context, Question) (Answer, error)) {
	h[o.Name] = func(ctx context.Context, data []byte) ([]byte, error) {
		var q Question
		if err := json.Unmarshal(data, &q); err != nil {
			return nil, &fault.Fault{Kind: fault.Invalid, Message: "The question can't be read", Cause: err}
		}
		ctx, cancel := context.WithTimeout(ctx, o.Limit)
		defer cancel()
		a, err := answer(ctx, q)
		if err != nil {
			return nil, err
		}
		data, err = json.Marshal(a)
		if err != nil {
			return nil, fmt.Errorf("encoding the answer of %s.%s: %w", o.Service, o.Name, err)
		}
		return data, nil
	}
}

// Done is the answer of an operation that has nothing else to tell.
type Done struct {
	Status string `json:"status"` // Success
}

// Success is the status of an answer that has one and is no fault.
const Success = "success"
