package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/topology"
)

// Examined is what a look at a NATS server found.
type Examined struct {
	Server    string        // its version
	Cluster   string        // its name; "" = it is alone
	RoundTrip time.Duration // of a question and its answer
	JetStream error         // why there is none
	Keeps     []topology.Found
}

// ErrRights says that the connection may not hear answers under any of the names that were tried.
var ErrRights = errors.New("the server gives no rights to hear answers")

// Examine looks at the server of the configuration, once, and changes nothing on it. names are those under which the connection tries to hear answers:
// the services of a secured server have a name each, see Config.Name. The error says that there is no connection, or ErrRights.
func Examine(ctx context.Context, cfg Config, names ...string) (Examined, error) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	var found Examined
	for _, name := range names {
		cfg.Name = name
		heard, err := examine(ctx, cfg, &found)
		if err != nil || heard {
			return found, err
		}
	}
	return found, ErrRights
}

// examine is Examine under one name. heard is false when the server does not let the connection hear answers.
func examine(ctx context.Context, cfg Config, found *Examined) (heard bool, err error) {
	opts, err := options(cfg, []nats.Option{nats.NoReconnect(), nats.PermissionErrOnSubscribe(true)})
	if err != nil {
		return false, err
	}
	if limit, ok := ctx.Deadline(); ok {
		opts.Timeout = max(time.Millisecond, time.Until(limit)/time.Duration(len(opts.Servers)+1))
	}
	nc, err := opts.Connect()
	if err != nil {
		return false, fmt.Errorf("connecting to NATS: %w", err)
	}
	defer nc.Close()
	found.Server, found.Cluster = nc.ConnectedServerVersion(), nc.ConnectedClusterName()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return false, fmt.Errorf("asking NATS: %w", err)
	}
	begin := time.Now()
	if err := nc.PublishRequest("$JS.API.INFO", inbox, nil); err != nil {
		return false, fmt.Errorf("asking NATS: %w", err)
	}
	msg, err := sub.NextMsgWithContext(ctx)
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		return false, nil
	case errors.Is(err, nats.ErrNoResponders):
		found.JetStream = errors.New("it is not enabled on the server")
		return true, nil
	case err != nil:
		return false, fmt.Errorf("waiting for NATS: %w", err)
	}
	found.RoundTrip = time.Since(begin)
	var info struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		return false, fmt.Errorf("reading what NATS says: %w", err)
	}
	if info.Error != nil {
		found.JetStream = info.Error
		return true, nil
	}
	found.Keeps, err = topology.Examine(ctx, nc, cfg.Topology)
	return true, err
}

// Shown is a list of addresses of servers without the passwords that they may hold.
func Shown(urls string) string { return shown(strings.TrimSpace(urls)) }
