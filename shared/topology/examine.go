package topology

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Found is how something that the server keeps is, seen from outside.
type Found struct {
	Kind, Name string // "stream", "bucket" or "object store"
	Bytes      uint64 // that it holds
	Replicas   int    // copies that there are to be
	Behind     int    // copies that are away, or have not caught up
	Missing    bool
	Differs    bool  // it is not as the configuration wants it
	Err        error // of the look; nothing else is known then
}

// Examine looks at everything that the pipeline keeps on the server behind nc, all at the same time. It changes nothing, and needs no right that a service
// does not have.
func Examine(ctx context.Context, nc *nats.Conn, cfg Config) ([]Found, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	list := cfg.assets(js)
	found := make([]Found, len(list))
	var looking sync.WaitGroup
	for i, a := range list {
		looking.Go(func() { found[i] = a.examine(ctx, nc) })
	}
	looking.Wait()
	return found, nil
}

func (a asset) examine(ctx context.Context, nc *nats.Conn) Found {
	f := Found{Kind: a.kind, Name: a.name}
	info, err := StreamInfo(ctx, nc, a.stream.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		f.Missing = true
	case err != nil:
		f.Err = err
	default:
		f.Bytes, f.Replicas, f.Differs = info.State.Bytes, info.Config.Replicas, !a.matches(info.Config)
		if info.Cluster != nil {
			for _, r := range info.Cluster.Replicas {
				if r.Offline || !r.Current {
					f.Behind++
				}
			}
			f.Behind += max(0, info.Config.Replicas-1-len(info.Cluster.Replicas))
		}
	}
	return f
}
