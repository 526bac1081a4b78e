package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// exampleBus gives a bus with a server of its own.
func exampleBus(ctx context.Context) (b *bus.Bus, end func(), err error) {
	dir, err := os.MkdirTemp("", "bus-example-")
	if err != nil {
		return nil, nil, err
	}
	server, stop, err := natstest.Launch(dir)
	if err != nil {
		return nil, nil, err
	}
	b, err = bus.Connect(ctx, bus.Config{InProcess: server, Name: "example", Logger: slog.New(slog.DiscardHandler)})
	return b, func() {
		_ = b.Close(ctx)
		stop()
		_ = os.RemoveAll(dir)
	}, err
}

// A stage hands a request on; a worker of the next one takes it and answers straight to the ingress that owns the client.
func Example() {
	ctx := context.Background()
	b, end, err := exampleBus(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	answered := make(chan struct{})
	replies, err := b.SubscribeReplies("ingress-1", func(rid string, frames []byte) {
		for frame, err := range contract.Frames(frames) {
			if err != nil {
				continue
			}
			fmt.Printf("%s %c %s\n", rid, frame.Kind, frame.Payload)
			if frame.Kind == contract.FrameEnd {
				close(answered)
			}
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	worker, err := b.ConsumeWork(ctx, bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 8}, func(ctx context.Context, w *bus.Work) {
		reply := w.OpenReply()
		defer reply.Close()
		_ = reply.Head(contract.Head{Status: 200})
		_ = reply.Data(ctx, append([]byte("you sent "), w.Body...))
		_ = reply.End(contract.End{Outcome: contract.OutcomeSuccess})
		_ = reply.Flush()
		w.Done()
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	request := &contract.Request{
		ID: "r1", Slip: contract.Slip{contract.StageEnriched}, Ingress: "ingress-1", Operation: contract.Chat, Surface: contract.SurfaceChat,
		StartBy: time.Now().Add(time.Minute),
	}
	if err := b.PublishWork(ctx, request, []byte(`{"model":"my-model"}`)); err != nil {
		fmt.Println(err)
		return
	}
	<-answered
	_ = worker.Stop(ctx)
	_ = replies.Stop()
	// Output:
	// r1 h {"status":200}
	// r1 d you sent {"model":"my-model"}
	// r1 e {"outcome":"success"}
}

// A bucket is shared by all services. A value is replaced only if nobody else was faster.
func ExampleBucket() {
	ctx := context.Background()
	b, end, err := exampleBus(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	bucket, err := b.Bucket(ctx, subject.StateBucket)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := bucket.Create(ctx, "a", []byte("one"))
	fmt.Println(err)
	_, err = bucket.Update(ctx, "a", []byte("two"), first)
	fmt.Println(err)
	_, err = bucket.Update(ctx, "a", []byte("three"), first)
	fmt.Println(errors.Is(err, bus.ErrConflict))
	entry, err := bucket.Get(ctx, "a")
	fmt.Println(string(entry.Value), err)
	// Output:
	// <nil>
	// <nil>
	// true
	// two <nil>
}
