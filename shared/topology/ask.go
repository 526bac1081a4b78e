package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// askLimit bounds a question: what has no leader has nobody who answers for it.
	askLimit = 3 * time.Second
	// askEvery is how often a question is put meanwhile. One from before an election is never answered, so that this is how long the new leader waits.
	askEvery = 250 * time.Millisecond

	apiStreamInfo   = "$JS.API.STREAM.INFO."
	apiConsumerInfo = "$JS.API.CONSUMER.INFO."
	apiMessageGet   = "$JS.API.STREAM.MSG.GET."
)

// ErrNoAnswer says that nobody answered for a stream or consumer: it has no leader, or the server is not there.
var ErrNoAnswer = errors.New("nobody answers")

// StreamInfo asks the leader of a stream about it. The error is ErrNoAnswer, jetstream.ErrStreamNotFound or another *jetstream.APIError, or what the
// connection says.
func StreamInfo(ctx context.Context, nc *nats.Conn, stream string) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := ask(ctx, nc, apiStreamInfo+stream, nil, &info); err != nil {
		return nil, err
	}
	return &info, nil
}

// ConsumerInfo asks the leader of a consumer about it. Errors are as of StreamInfo.
func ConsumerInfo(ctx context.Context, nc *nats.Conn, stream, consumer string) (*jetstream.ConsumerInfo, error) {
	var info jetstream.ConsumerInfo
	if err := ask(ctx, nc, apiConsumerInfo+stream+"."+consumer, nil, &info); err != nil {
		return nil, err
	}
	return &info, nil
}

// HasFrom asks the leader of a stream whether it has a message on a subject, which may have wildcards, with a number of at least seq.
func HasFrom(ctx context.Context, nc *nats.Conn, stream, subj string, seq uint64) (bool, error) {
	question, err := json.Marshal(map[string]any{"seq": seq, "next_by_subj": subj, "no_hdr": true})
	if err != nil {
		return false, fmt.Errorf("asking for a message: %w", err)
	}
	var answer struct{}
	err = ask(ctx, nc, apiMessageGet+stream, question, &answer)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ask puts a question to JetStream until one who knows has answered. It takes the answer to any of the times, however late: a busy machine needs longer
// than askEvery.
func ask(ctx context.Context, nc *nats.Conn, subj string, question []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("asking %s: %w", subj, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // with the connection it is gone anyway
	for {
		if err := nc.PublishRequest(subj, inbox, question); err != nil {
			return fmt.Errorf("asking %s: %w", subj, err)
		}
		known, err := hear(ctx, sub, answer)
		switch {
		case known, err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("asking %s: %w: %w", subj, ErrNoAnswer, ctx.Err())
		}
	}
}

// hear waits for answers until it is time to ask again.
func hear(ctx context.Context, sub *nats.Subscription, answer any) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders): // no server has JetStream yet
			continue
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, fmt.Errorf("waiting for an answer: %w", err)
		}
		if known, err := read(msg.Data, answer); known || err != nil {
			return known, err
		}
	}
}

// jsClusterNotAvailable is the answer of a member of a group without a leader.
const jsClusterNotAvailable jetstream.ErrorCode = 10008

// read reads an answer. It is none when it comes from a member of a group that has no leader: after ten seconds without one, members tell what they know.
func read(data []byte, answer any) (known bool, err error) {
	var from struct {
		Error   *jetstream.APIError    `json:"error"`
		Cluster *jetstream.ClusterInfo `json:"cluster"`
	}
	if err := json.Unmarshal(data, &from); err != nil {
		return false, fmt.Errorf("reading an answer: %w", err)
	}
	switch {
	case from.Error != nil && from.Error.ErrorCode == jsClusterNotAvailable, from.Cluster != nil && from.Cluster.Leader == "":
		return false, nil
	case from.Error != nil:
		return false, from.Error
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return false, fmt.Errorf("reading an answer: %w", err)
	}
	return true, nil
}
