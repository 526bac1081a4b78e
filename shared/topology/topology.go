// Package topology declares the streams, consumers and buckets of the pipeline and brings a NATS server to that state. It creates what is
// missing, updates what may be updated, and reports what differs and can't be changed while running.
package topology

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Limits of the streams and buckets. They bound what a stalled consumer can pile up.
const (
	// AckWait is how long a stage may be silent about a message before another worker gets it. Workers report progress every third of it.
	AckWait = 5 * time.Second

	workMaxBytes  = 512 << 20
	workMaxAge    = 30 * time.Minute
	workDedupe    = time.Minute
	workMaxAcks   = 65536 // requests under way per stage
	factsMaxBytes = 4 << 30
	factsMaxAge   = 7 * 24 * time.Hour
	deadMaxBytes  = 256 << 20
	deadMaxAge    = 14 * 24 * time.Hour
	bodiesMaxAge  = 30 * time.Minute
	bodiesBytes   = 2 << 30
	stateTTL      = 30 * time.Second
	slotsTTL      = time.Minute
	dialogueTTL   = 6*time.Hour + time.Minute // six hours since the last use
	webCacheTTL   = 24 * time.Hour
	kvMaxBytes    = 64 << 20
)

// Consumer names: one for each stage of the work, one for the facts.
const (
	Session       = "session"
	Analyzer      = "analyzer"
	Enricher      = "enricher"
	Dispatcher    = "dispatcher"
	SessionWriter = "session-writer"
)

// Config is what an operator may choose.
type Config struct {
	Replicas    int  // copies of each stream and bucket; 1 on a single server
	WorkOnDisk  bool // keep the request stream in files instead of memory
	MaxInFlight int  // requests under way per stage; 0 = 65536
}

// Streams gives the wanted streams.
func (c Config) Streams() []jetstream.StreamConfig {
	storage := jetstream.MemoryStorage
	if c.WorkOnDisk {
		storage = jetstream.FileStorage
	}
	return []jetstream.StreamConfig{
		{
			Name: subject.WorkStream, Description: "requests on their way through the pipeline",
			Subjects: []string{subject.AllWork}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			Storage: storage, MaxBytes: workMaxBytes, MaxAge: workMaxAge, Duplicates: workDedupe, Replicas: c.replicas(),
		},
		{
			Name: subject.FactsStream, Description: "what happened: usage, logs, turns of sessions",
			Subjects: []string{subject.AllUsage, subject.AllLogs, subject.AllTurns}, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, MaxBytes: factsMaxBytes, MaxAge: factsMaxAge, Replicas: c.replicas(),
		},
		{
			Name: subject.DeadStream, Description: "messages that no worker could process",
			Subjects: []string{subject.AllDead}, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, MaxBytes: deadMaxBytes, MaxAge: deadMaxAge, Replicas: c.replicas(),
		},
	}
}

// Consumers gives the wanted durable consumers by stream.
func (c Config) Consumers() map[string][]jetstream.ConsumerConfig {
	inFlight := c.MaxInFlight
	if inFlight == 0 {
		inFlight = workMaxAcks
	}
	work := func(name string, stage contract.Stage) jetstream.ConsumerConfig {
		return jetstream.ConsumerConfig{
			Durable: name, FilterSubject: subject.Work(string(stage)), AckPolicy: jetstream.AckExplicitPolicy, AckWait: AckWait,
			MaxAckPending: inFlight, MaxDeliver: -1, MaxWaiting: 4096, Replicas: c.replicas(), MemoryStorage: !c.WorkOnDisk,
		}
	}
	return map[string][]jetstream.ConsumerConfig{
		subject.WorkStream: {
			work(Session, contract.StageSession), work(Analyzer, contract.StageReceived), work(Enricher, contract.StageAnalyzed),
			work(Dispatcher, contract.StageEnriched),
		},
		subject.FactsStream: {{
			Durable: SessionWriter, FilterSubjects: []string{subject.AllUsage, subject.AllLogs, subject.AllTurns},
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxAckPending: 16384, MaxDeliver: -1, Replicas: c.replicas(),
		}},
	}
}

// Buckets gives the wanted key-value buckets.
func (c Config) Buckets() []jetstream.KeyValueConfig {
	return []jetstream.KeyValueConfig{
		{
			Bucket: subject.StateBucket, Description: "what each dispatcher knows: keys by tier, circuits, slots",
			Storage: jetstream.MemoryStorage, TTL: stateTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.SlotsBucket, Description: "leases of concurrency slots",
			Storage: jetstream.MemoryStorage, TTL: slotsTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.DialogueBucket, Description: "ids of dialogues for session headers",
			Storage: jetstream.MemoryStorage, TTL: dialogueTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.CatalogBucket, Description: "discovered models",
			Storage: jetstream.FileStorage, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.KeysBucket, Description: "keys added at run time, sealed",
			Storage: jetstream.FileStorage, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.WebCacheBucket, Description: "fetched pages",
			Storage: jetstream.FileStorage, TTL: webCacheTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
	}
}

func (c Config) replicas() int { return max(1, c.Replicas) }

// Ensure creates or updates everything on the server behind js. Several services may do it at the same time. What can't be brought to the
// wanted state is logged as drift and left as it is, as long as it exists; what can't be created is an error.
func Ensure(ctx context.Context, js jetstream.JetStream, cfg Config, log *slog.Logger) error {
	var errs []error
	consumers := cfg.Consumers()
	for _, want := range cfg.Streams() {
		if err := ensureStream(ctx, js, want, log); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, c := range consumers[want.Name] {
			errs = append(errs, ensureConsumer(ctx, js, want.Name, c, log))
		}
	}
	for _, want := range cfg.Buckets() {
		errs = append(errs, ensureBucket(ctx, js, want, log))
	}
	errs = append(errs, ensureBodies(ctx, js, cfg, log))
	return errors.Join(errs...)
}

// matches says whether the stream is there as it is wanted. Streams that match are left alone: an update is not free, and the server is not
// at its best while several services update at once.
func matches(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) bool {
	s, err := js.Stream(ctx, want.Name)
	if err != nil {
		return false
	}
	have := s.CachedInfo().Config
	return have.Storage == want.Storage && have.Retention == want.Retention && have.Discard == want.Discard && have.MaxBytes == want.MaxBytes &&
		have.MaxAge == want.MaxAge && have.Replicas == want.Replicas && have.Description == want.Description &&
		(len(want.Subjects) == 0 || slices.Equal(have.Subjects, want.Subjects)) && (want.Duplicates == 0 || have.Duplicates == want.Duplicates)
}

func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, log *slog.Logger) error {
	if matches(ctx, js, want) {
		return nil
	}
	_, err := js.CreateOrUpdateStream(ctx, want)
	if err == nil {
		return nil
	}
	if _, getErr := js.Stream(ctx, want.Name); getErr != nil {
		return fmt.Errorf("creating stream %s: %w", want.Name, err)
	}
	drift(log, "stream", want.Name, err)
	return nil
}

func ensureConsumer(ctx context.Context, js jetstream.JetStream, stream string, want jetstream.ConsumerConfig, log *slog.Logger) error {
	_, err := js.CreateOrUpdateConsumer(ctx, stream, want)
	if err == nil {
		return nil
	}
	if _, getErr := js.Consumer(ctx, stream, want.Durable); getErr != nil {
		return fmt.Errorf("creating consumer %s of %s: %w", want.Durable, stream, err)
	}
	drift(log, "consumer", want.Durable, err)
	return nil
}

func ensureBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig, log *slog.Logger) error {
	behind := jetstream.StreamConfig{
		Name: "KV_" + want.Bucket, Description: want.Description, Storage: want.Storage, Discard: jetstream.DiscardNew,
		MaxBytes: want.MaxBytes, MaxAge: want.TTL, Replicas: want.Replicas,
	}
	if matches(ctx, js, behind) {
		return nil
	}
	_, err := js.CreateOrUpdateKeyValue(ctx, want)
	if err == nil {
		return nil
	}
	if _, getErr := js.KeyValue(ctx, want.Bucket); getErr != nil {
		return fmt.Errorf("creating bucket %s: %w", want.Bucket, err)
	}
	drift(log, "bucket", want.Bucket, err)
	return nil
}

func ensureBodies(ctx context.Context, js jetstream.JetStream, cfg Config, log *slog.Logger) error {
	want := jetstream.ObjectStoreConfig{
		Bucket: subject.BodiesBucket, Description: "request bodies above the payload limit",
		Storage: jetstream.FileStorage, TTL: bodiesMaxAge, MaxBytes: bodiesBytes, Replicas: cfg.replicas(),
	}
	behind := jetstream.StreamConfig{
		Name: "OBJ_" + want.Bucket, Description: want.Description, Storage: want.Storage, Discard: jetstream.DiscardNew,
		MaxBytes: want.MaxBytes, MaxAge: want.TTL, Replicas: want.Replicas,
	}
	if matches(ctx, js, behind) {
		return nil
	}
	_, err := js.CreateOrUpdateObjectStore(ctx, want)
	if err == nil {
		return nil
	}
	if _, getErr := js.ObjectStore(ctx, subject.BodiesBucket); getErr != nil {
		return fmt.Errorf("creating object store %s: %w", subject.BodiesBucket, err)
	}
	drift(log, "object store", subject.BodiesBucket, err)
	return nil
}

// drift reports that something on the server differs from what is wanted here and can't be changed in place.
func drift(log *slog.Logger, what, name string, err error) {
	log.Warn("topology drift: it differs from the wanted configuration and can't be updated", slog.String("kind", what),
		slog.String("name", name), slog.Any("error", err))
}
