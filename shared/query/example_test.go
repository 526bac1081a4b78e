package query_test

import (
	"context"
	"errors"
	"fmt"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// answering is a bus to one service that answers in this process.
type answering struct{ handlers query.Handlers }

func (a answering) Query(ctx context.Context, _, op string, question []byte) ([]byte, error) {
	return a.handlers[op](ctx, question)
}

func (a answering) QueryInstance(ctx context.Context, service, _, op string, question []byte) ([]byte, error) {
	return a.Query(ctx, service, op, question)
}

// Both sides use one declaration: who asks can't misname the operation, who answers can't misread the question, and a fault stays what it is.
func ExampleOp() {
	ctx := context.Background()
	refused := &fault.Fault{Kind: fault.Invalid, Message: "there is no provider \"nowhere\"", Param: "provider"}
	bus := answering{query.Handlers{}}
	query.AddKeys.Handle(bus.handlers, func(_ context.Context, q query.NewKeys) (query.KeysAdded, error) {
		if q.Provider != "groq" {
			return query.KeysAdded{}, refused
		}
		return query.KeysAdded{Status: query.Success, Added: 2}, nil
	})

	added, err := query.AddKeys.Ask(ctx, bus, query.NewKeys{Provider: "groq"})
	fmt.Println(added.Added, err)
	_, err = query.AddKeys.Ask(ctx, bus, query.NewKeys{Provider: "nowhere"})
	fmt.Println(errors.Is(err, refused), err)
	// Output:
	// 2 <nil>
	// true there is no provider "nowhere"
}
