package sessionwriter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"hydrallm/services/session-writer/internal/archive"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// keptBuckets are those whose values are nowhere else and outlive a restart.
func keptBuckets() []string {
	return []string{subject.KeysBucket, subject.ClientKeysBucket, subject.KeywordsBucket, subject.RestsBucket}
}

const backupNote = "Keys that were added at run time are encrypted: only the ADMIN_API_KEY of this time opens them. Conversations are not encrypted."

// Limits of a backup under way.
const (
	backupPiece  = 1 << 20          // bytes
	backupIdle   = 3 * time.Minute  // between two questions for it: a client that is slow, or an ingress that has died
	backupSettle = 90 * time.Second // until the facts from before it are stored
)

// backups answers query.GetBackup. A service makes one at a time: each holds a transaction open.
type backups struct {
	id, version string
	store       *store.Store
	bus         *bus.Bus
	work        context.Context //nolint:containedctx // of the service: it bounds what goes on between questions
	running     *sync.WaitGroup // of the service

	mu  sync.Mutex
	now *backup // nil = none
}

// backup is one under way.
type backup struct {
	id     string
	pipe   *io.PipeReader
	cancel context.CancelFunc
	idle   *time.Timer
	next   int
	last   query.BackupData // piece next-1, for a question that is put again
}

var (
	errBackupBusy = fault.New(fault.Conflict, "Another backup is being made at the moment")
	errBackupGone = fault.New(fault.NotFound, "There is no such backup: it took too long to fetch, or its session-writer has ended")
)

func (b *backups) get(ctx context.Context, q query.BackupPiece) (query.BackupData, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.ID == "" {
		if b.now != nil {
			return query.BackupData{}, errBackupBusy
		}
		if err := b.begin(ctx); err != nil {
			return query.BackupData{}, err
		}
		q = query.BackupPiece{ID: b.now.id}
	}
	now := b.now
	if now == nil || now.id != q.ID || !q.Drop && (q.Piece > now.next || q.Piece < now.next-1) {
		return query.BackupData{}, errBackupGone
	}
	if q.Drop {
		b.give(now)
		return query.BackupData{Instance: b.id, ID: now.id, End: true}, nil
	}
	if q.Piece == now.next-1 {
		return now.last, nil
	}
	now.idle.Reset(backupIdle)
	data := make([]byte, backupPiece)
	n, err := io.ReadFull(now.pipe, data)
	end := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !end {
		b.give(now)
		return query.BackupData{}, fmt.Errorf("making a backup: %w", err)
	}
	now.last, now.next = query.BackupData{Instance: b.id, ID: now.id, Data: data[:n], End: end}, now.next+1
	if end {
		b.give(now)
	}
	return now.last, nil
}

// give ends a backup. The caller has the lock.
func (b *backups) give(one *backup) {
	one.cancel()
	one.idle.Stop()
	_ = one.pipe.Close() // never fails
	if b.now == one {
		b.now = nil
	}
}

// begin starts the making of a backup. The caller has the lock.
func (b *backups) begin(ctx context.Context) error {
	settle, over := context.WithTimeout(ctx, backupSettle)
	defer over()
	if err := b.bus.FactsSettled(settle, topology.SessionWriter); err != nil {
		return &fault.Fault{Kind: fault.Unavailable, Message: "What happened before the backup can't be stored at the moment", RetryAfter: time.Second, Cause: err}
	}
	b.start(func(ctx context.Context, w io.Writer) error { return writeBackup(ctx, w, b.version, b.store, b.bus) }) //nolint:contextcheck // what goes on between questions is the service's
	return nil
}

// start has write make the backup, which goes on as far as it is read. The caller has the lock.
func (b *backups) start(write func(ctx context.Context, w io.Writer) error) {
	work, cancel := context.WithCancel(b.work)
	r, w := io.Pipe()
	one := &backup{id: strings.ToLower(rand.Text()), pipe: r, cancel: cancel}
	one.idle = time.AfterFunc(backupIdle, func() {
		cancel() // a question that waits for data, and has the lock, ends
		b.mu.Lock()
		defer b.mu.Unlock()
		b.give(one)
	})
	context.AfterFunc(work, func() {
		one.idle.Stop()
		_ = w.CloseWithError(context.Canceled) // never fails
	})
	b.running.Go(func() { _ = w.CloseWithError(write(work, w)) })
	b.now = one
}

// record is a value of a bucket.
type record struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// writeBackup writes all that is kept: the buckets first, then the database as it is at one moment.
func writeBackup(ctx context.Context, w io.Writer, version string, db *store.Store, b *bus.Bus) error {
	out := archive.NewWriter(w, time.Now().UTC())
	n := 0
	part := func(kind, name string, data []byte) error {
		n++
		return out.Add(fmt.Sprintf("%s/%06d-%s", kind, n, name), data)
	}
	for _, name := range keptBuckets() {
		records, err := readBucket(ctx, b, name)
		if err != nil {
			return fmt.Errorf("reading bucket %s: %w", name, err)
		}
		data, err := json.Marshal(records)
		if err != nil {
			return err
		}
		if err := part("bucket", name, data); err != nil {
			return err
		}
	}
	schema, err := db.Export(ctx, func(table string, chunk []byte) error { return part("database", table, chunk) })
	if err != nil {
		return err
	}
	return out.Close(archive.Manifest{Version: version, Schema: schema, Note: backupNote})
}

func readBucket(ctx context.Context, b *bus.Bus, name string) (records []record, err error) {
	bucket, err := b.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	records = []record{}
	var mu sync.Mutex // of a change that comes when all has been read
	whole := false
	watch, err := bucket.Watch(ctx, ">", func(e bus.Entry) {
		mu.Lock()
		defer mu.Unlock()
		if !e.Deleted && !whole {
			records = append(records, record{e.Key, e.Value})
		}
	})
	if err != nil {
		return nil, err
	}
	mu.Lock()
	whole = true
	mu.Unlock()
	watch.Stop()
	return records, nil
}
