// Package topology declares the streams, consumers and buckets of the pipeline and brings a NATS server to that state. It creates what is
// missing, updates what may be updated, and reports what differs and can't be changed while running.
package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Limits of the streams and buckets. They bound what a stalled consumer can pile up.
const (
	// AckWait is how long a stage may be silent about a message before another worker gets it. Workers report progress every third of it.
	AckWait = 5 * time.Second

	workMaxBytes       = 512 << 20
	workMaxAge         = 30 * time.Minute
	workDedupe         = time.Minute
	workMaxAcks        = 65536 // requests under way per stage
	backgroundMaxBytes = 512 << 20
	backgroundMaxAge   = 6*time.Hour + 30*time.Minute // more than config.MaxLifetime
	recordingsMaxBytes = 2 << 30
	recordingsMaxAge   = 12 * time.Hour

	factsMaxBytes = 4 << 30
	factsMaxAge   = 7 * 24 * time.Hour
	deadMaxBytes  = 256 << 20
	deadMaxAge    = 14 * 24 * time.Hour
	bodiesMaxAge  = backgroundMaxAge // those of requests that are done are removed before
	bodiesBytes   = 2 << 30
	stateTTL      = 30 * time.Second
	slotsTTL      = time.Minute
	queueTTL      = time.Minute
	dialogueTTL   = 6*time.Hour + time.Minute // six hours since the last use
	countsTTL     = 5 * time.Minute
	webCacheTTL   = 24 * time.Hour
	restsTTL      = 31 * 24 * time.Hour // whatever ends sooner is removed by dispatchers; this is for the marks of what was removed
	kvMaxBytes    = 64 << 20
	webCacheBytes = 256 << 20 // a page has some 20 KB
)

// Consumer names: one for each stage of the work, in both streams of it, one for the facts.
const (
	Session       = "session"
	Analyzer      = "analyzer"
	Enricher      = "enricher"
	Dispatcher    = "dispatcher"
	SessionWriter = "session-writer"
)

// Config is what an operator may choose, and for whom it is.
type Config struct {
	// Service is who brings the server to the wanted state, by the name of its binary. Every service creates the streams and buckets that are missing and the consumers
	// that it takes from; only the session writer alters what is there, so that no other one needs the right to. "" does all of it.
	Service string

	Replicas    int  // copies of each stream and bucket; 1 on a single server
	WorkOnDisk  bool // keep the request stream in files instead of memory
	MaxInFlight int  // requests under way per stage; 0 = 65536

	WebCacheTTL time.Duration // how long pages of the web are kept; 0 = 24 h
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
			Name: subject.BackgroundStream, Description: "requests that no ingress owns, on their way through the pipeline",
			Subjects: []string{subject.AllBackground}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, MaxBytes: backgroundMaxBytes, MaxAge: backgroundMaxAge, Duplicates: workDedupe, Replicas: c.replicas(),
		},
		{
			Name: subject.RecordingsStream, Description: "answers to requests that no ingress owns, and the keys that stand for them",
			Subjects: []string{subject.AllRecordings, subject.AllClaims}, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, MaxBytes: recordingsMaxBytes, MaxAge: recordingsMaxAge, Replicas: c.replicas(),
		},
		{
			Name: subject.FactsStream, Description: "what happened: usage, logs, turns of sessions, stored responses",
			Subjects: []string{subject.AllUsage, subject.AllLogs, subject.AllTurns, subject.AllStored, subject.AllWeb}, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, MaxBytes: factsMaxBytes, MaxAge: factsMaxAge, Replicas: c.replicas(),
		},
		{
			Name: subject.DeadStream, Description: "messages that no worker could process",
			Subjects: []string{subject.AllDead}, Discard: jetstream.DiscardOld,
			Storage: jetstream.FileStorage, MaxBytes: deadMaxBytes, MaxAge: deadMaxAge, Replicas: c.replicas(),
		},
	}
}

// consumers is Consumers without those that other services take from.
func (c Config) consumers() map[string][]jetstream.ConsumerConfig {
	all := c.Consumers()
	for stream, list := range all {
		all[stream] = slices.DeleteFunc(list, func(con jetstream.ConsumerConfig) bool { return c.Service != "" && c.Service != Owner(con.Durable) })
	}
	return all
}

// Owner names the service that takes from a consumer.
func Owner(consumer string) string {
	if consumer == Session {
		return SessionWriter
	}
	return consumer
}

// alters says whether what is there may be changed.
func (c Config) alters() bool { return c.Service == "" || c.Service == SessionWriter }

// Consumers gives the wanted durable consumers by stream.
func (c Config) Consumers() map[string][]jetstream.ConsumerConfig {
	inFlight := c.MaxInFlight
	if inFlight == 0 {
		inFlight = workMaxAcks
	}
	work := func(wait func(stage string) string, onDisk bool) []jetstream.ConsumerConfig {
		consumer := func(name string, stage contract.Stage) jetstream.ConsumerConfig {
			return jetstream.ConsumerConfig{
				Durable: name, FilterSubject: wait(string(stage)), AckPolicy: jetstream.AckExplicitPolicy, AckWait: AckWait,
				MaxAckPending: inFlight, MaxDeliver: -1, MaxWaiting: 4096, Replicas: c.replicas(), MemoryStorage: !onDisk,
			}
		}
		return []jetstream.ConsumerConfig{
			consumer(Session, contract.StageSession), consumer(Analyzer, contract.StageReceived), consumer(Enricher, contract.StageAnalyzed),
			consumer(Dispatcher, contract.StageEnriched),
		}
	}
	return map[string][]jetstream.ConsumerConfig{
		subject.WorkStream:       work(subject.Work, c.WorkOnDisk),
		subject.BackgroundStream: work(subject.Background, true),
		subject.FactsStream: {{
			Durable: SessionWriter, FilterSubjects: []string{subject.AllUsage, subject.AllLogs, subject.AllTurns, subject.AllStored, subject.AllWeb},
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxAckPending: 16384, MaxDeliver: -1, Replicas: c.replicas(),
		}},
	}
}

// Buckets gives the wanted key-value buckets.
func (c Config) Buckets() []jetstream.KeyValueConfig {
	return []jetstream.KeyValueConfig{
		{
			Bucket: subject.StateBucket, Description: "what each dispatcher knows: keys by tier, circuits, slots",
			Storage: c.passing(), TTL: stateTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.SlotsBucket, Description: "leases of concurrency slots",
			Storage: c.passing(), TTL: slotsTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.QueueBucket, Description: "requests that wait for a slot",
			Storage: c.passing(), TTL: queueTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.DialogueBucket, Description: "ids of dialogues for session headers",
			Storage: c.passing(), TTL: dialogueTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
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
			Bucket: subject.RestsBucket, Description: "open circuits and cooldowns of keys that last longer than a minute",
			Storage: jetstream.FileStorage, TTL: restsTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.KeywordsBucket, Description: "keywords of questions that need the web, by language",
			Storage: jetstream.FileStorage, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.SettingsBucket, Description: "a copy of the settings that are stored in the database",
			Storage: jetstream.FileStorage, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.ClientKeysBucket, Description: "named keys of clients, as hashes",
			Storage: jetstream.FileStorage, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.ClientCountsBucket, Description: "what clients have used of their limits in this minute",
			Storage: c.passing(), TTL: countsTTL, MaxBytes: kvMaxBytes, Replicas: c.replicas(),
		},
		{
			Bucket: subject.WebCacheBucket, Description: "fetched pages",
			Storage: jetstream.FileStorage, TTL: cmp.Or(c.WebCacheTTL, webCacheTTL), MaxBytes: webCacheBytes, Replicas: c.replicas(),
		},
	}
}

// Bodies gives the wanted object store of request bodies.
func (c Config) Bodies() jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: subject.BodiesBucket, Description: "request bodies above the payload limit",
		Storage: jetstream.FileStorage, TTL: bodiesMaxAge, MaxBytes: bodiesBytes, Replicas: c.replicas(),
	}
}

// passing is where values are kept that live for seconds or hours. In a cluster they go where the requests are: once all its servers have ended, what is
// in memory has no leader before every one of them is back, what is on disk has one when most are.
func (c Config) passing() jetstream.StorageType {
	if c.WorkOnDisk && c.replicas() > 1 {
		return jetstream.FileStorage
	}
	return jetstream.MemoryStorage
}

func (c Config) replicas() int { return max(1, c.Replicas) }

// changeLimit bounds the creation of something. When it takes longer, the next try finds it.
const changeLimit = 5 * time.Second

// asset is something that the server keeps in a stream.
type asset struct {
	kind, name string
	stream     jetstream.StreamConfig // that holds it, as far as it is compared

	create, update func(context.Context) error
}

func (c Config) assets(js jetstream.JetStream) []asset {
	var list []asset
	for _, want := range c.Streams() {
		list = append(list, asset{"stream", want.Name, want, func(ctx context.Context) error {
			_, err := js.CreateStream(ctx, want)
			return err
		}, func(ctx context.Context) error {
			_, err := js.UpdateStream(ctx, want)
			return err
		}})
	}
	for _, want := range c.Buckets() {
		list = append(list, asset{"bucket", want.Bucket, jetstream.StreamConfig{
			Name: "KV_" + want.Bucket, Description: want.Description, Storage: want.Storage, Discard: jetstream.DiscardNew,
			MaxBytes: want.MaxBytes, MaxAge: want.TTL, Replicas: want.Replicas,
		}, func(ctx context.Context) error {
			_, err := js.CreateKeyValue(ctx, want)
			return err
		}, func(ctx context.Context) error {
			_, err := js.UpdateKeyValue(ctx, want)
			return err
		}})
	}
	bodies := c.Bodies()
	return append(list, asset{"object store", bodies.Bucket, jetstream.StreamConfig{
		Name: "OBJ_" + bodies.Bucket, Description: bodies.Description, Storage: bodies.Storage, Discard: jetstream.DiscardNew,
		MaxBytes: bodies.MaxBytes, MaxAge: bodies.TTL, Replicas: bodies.Replicas,
	}, func(ctx context.Context) error {
		_, err := js.CreateObjectStore(ctx, bodies)
		return err
	}, func(ctx context.Context) error {
		_, err := js.UpdateObjectStore(ctx, bodies)
		return err
	}})
}

// Ensure creates or updates everything on the server behind js, all at the same time, so that it takes as long as the slowest needs. Several services
// may do it at once. What can't be brought to the wanted state is logged as drift and left as it is, as long as it exists; what can't be created is an
// error. The error is ErrNoAnswer, among others, when something has nobody who answers for it, after some seconds.
func Ensure(ctx context.Context, js jetstream.JetStream, cfg Config, log *slog.Logger) error {
	list, consumers := cfg.assets(js), cfg.consumers()
	errs := make([]error, len(list))
	var preparing sync.WaitGroup
	for i, a := range list {
		preparing.Go(func() {
			if errs[i] = a.ensure(ctx, js, cfg.alters(), log); errs[i] == nil {
				errs[i] = ensureConsumers(ctx, js, a.name, consumers[a.name], log)
			}
		})
	}
	preparing.Wait()
	return sumUp(list, errs)
}

// sumUp joins the errors, in one line those that say nothing but that nobody answered.
func sumUp(list []asset, errs []error) error {
	var silent []string
	for i, err := range errs {
		if errors.Is(err, ErrNoAnswer) {
			silent, errs[i] = append(silent, list[i].name), nil
		}
	}
	if len(silent) > 0 {
		errs = append(errs, fmt.Errorf("%w for %s", ErrNoAnswer, strings.Join(silent, ", ")))
	}
	return errors.Join(errs...)
}

func (a asset) ensure(ctx context.Context, js jetstream.JetStream, alters bool, log *slog.Logger) error {
	// What matches is left alone: an update is not free, and the server is not at its best while several services update at once.
	there, same, err := a.compare(ctx, js)
	switch {
	case same || err != nil:
		return err
	case !there:
		err = change(ctx, a.create)
	case alters:
		err = change(ctx, a.update)
	default:
		log.Info("topology differs from what is wanted here, until a session writer has changed it", slog.String("kind", a.kind), slog.String("name", a.name))
	}
	if err != nil && !there { // another service may have been faster
		there, same, _ = a.compare(ctx, js)
	}
	switch {
	case err == nil || same:
		return nil
	case errors.Is(err, ErrNoAnswer), !there:
		return fmt.Errorf("creating %s %s: %w", a.kind, a.name, err)
	}
	drift(log, a.kind, a.name, err)
	return nil
}

// compare tells whether the asset is there, and there as it is wanted.
func (a asset) compare(ctx context.Context, js jetstream.JetStream) (there, same bool, err error) {
	info, err := StreamInfo(ctx, js.Conn(), a.stream.Name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("looking for %s %s: %w", a.kind, a.name, err)
	}
	return true, a.matches(info.Config), nil
}

// matches says whether the asset is as it is wanted.
func (a asset) matches(have jetstream.StreamConfig) bool {
	want := a.stream
	return have.Storage == want.Storage && have.Retention == want.Retention && have.Discard == want.Discard && have.MaxBytes == want.MaxBytes &&
		have.MaxAge == want.MaxAge && have.Replicas == want.Replicas && have.Description == want.Description &&
		(len(want.Subjects) == 0 || slices.Equal(have.Subjects, want.Subjects)) && (want.Duplicates == 0 || have.Duplicates == want.Duplicates)
}

func ensureConsumers(ctx context.Context, js jetstream.JetStream, stream string, list []jetstream.ConsumerConfig, log *slog.Logger) error {
	errs := make([]error, len(list))
	var preparing sync.WaitGroup
	for i, want := range list {
		preparing.Go(func() { errs[i] = ensureConsumer(ctx, js, stream, want, log) })
	}
	preparing.Wait()
	return errors.Join(errs...)
}

func ensureConsumer(ctx context.Context, js jetstream.JetStream, stream string, want jetstream.ConsumerConfig, log *slog.Logger) error {
	info, err := ConsumerInfo(ctx, js.Conn(), stream, want.Durable)
	there := err == nil
	switch {
	case there && matches(want, info.Config):
		return nil
	case !there && !errors.Is(err, jetstream.ErrConsumerNotFound):
		return fmt.Errorf("looking for consumer %s of %s: %w", want.Durable, stream, err)
	}
	err = change(ctx, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNoAnswer), !there:
		return fmt.Errorf("creating consumer %s of %s: %w", want.Durable, stream, err)
	}
	drift(log, "consumer", want.Durable, err)
	return nil
}

func matches(want, have jetstream.ConsumerConfig) bool {
	return have.FilterSubject == want.FilterSubject && slices.Equal(have.FilterSubjects, want.FilterSubjects) &&
		have.AckWait == want.AckWait && have.MaxAckPending == want.MaxAckPending && have.MaxDeliver == want.MaxDeliver &&
		have.Replicas == want.Replicas && have.MemoryStorage == want.MemoryStorage && (want.MaxWaiting == 0 || have.MaxWaiting == want.MaxWaiting)
}

// change makes a request that changes something, which must not be repeated before it is known what became of it.
func change(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	err := request(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

// Final says whether Ensure would give the same error again, whatever happens to the server meanwhile.
func Final(err error) bool {
	const replicasNotSupported jetstream.ErrorCode = 10074 // several copies on a server without a cluster
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == replicasNotSupported
}

// Look says whether something is missing on the server behind js, or the stream of requests does not work. It costs two requests.
func Look(ctx context.Context, js jetstream.JetStream, cfg Config) error {
	if _, err := StreamInfo(ctx, js.Conn(), subject.WorkStream); err != nil { // a list does not tell whether a stream works
		return err
	}
	missing := map[string]bool{}
	for _, a := range cfg.assets(js) {
		missing[a.stream.Name] = true
	}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		delete(missing, name)
	}
	err := names.Err()
	if ctx.Err() != nil {
		err, missing = nil, nil // a cluster elects who knows the list, and works meanwhile
	}
	if err != nil {
		return fmt.Errorf("listing streams: %w", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("streams are missing: %v", slices.Sorted(maps.Keys(missing)))
	}
	return nil
}

// drift reports that something on the server differs from what is wanted here and can't be changed in place.
func drift(log *slog.Logger, what, name string, err error) {
	log.Warn("topology drift: it differs from the wanted configuration and can't be updated", slog.String("kind", what),
		slog.String("name", name), slog.Any("error", err))
}
