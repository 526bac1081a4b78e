package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// Bounds of the news that operators get.
const (
	liveEvery   = time.Second      // how often it is looked for news
	liveLimit   = 10 * time.Second // of one look
	liveBatch   = 100              // log lines, or requests, of one event
	liveEvents  = 64               // that are kept for readers that are slow
	liveReaders = 32
	liveStale   = 30 * time.Second // after which what was known is forgotten
)

// news is what the readers of the admin stream have in common. There is no goroutine: the first reader who finds that it is time looks for news, and the
// others find them. Without readers it costs nothing.
type news struct {
	api     *API
	readers atomic.Int32
	looking atomic.Bool // a reader looks for news

	mu       sync.Mutex
	looked   time.Time
	events   [][]byte // the last ones, as they are sent
	made     uint64   // how many there were
	status   []byte
	logs     cursor
	requests cursor
	faults   map[string]*fault.Fault // what can't be read now, by the part
}

// cursor is the number of the newest entry that was seen.
type cursor struct {
	known bool
	at    int64
}

// Parts of the news.
const (
	partStatus   = "status"
	partLogs     = "logs"
	partRequests = "requests"
)

// enter counts a reader, unless there are too many.
func (n *news) enter() bool {
	if n.readers.Add(1) > liveReaders {
		n.readers.Add(-1)
		return false
	}
	return true
}

func (n *news) leave() { n.readers.Add(-1) }

// look looks for news if it is time and nobody else does.
func (n *news) look(ctx context.Context) {
	if !n.looking.CompareAndSwap(false, true) {
		return
	}
	defer n.looking.Store(false)
	logs, requests, due := n.begin(time.Now())
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { n.lookAtStatus(ctx) })
	wg.Go(func() { n.lookAtLogs(ctx, logs) })
	wg.Go(func() { n.lookAtRequests(ctx, requests) })
	wg.Wait()
}

// begin says whether it is time, and from where on there may be news.
func (n *news) begin(now time.Time) (logs, requests cursor, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch age := now.Sub(n.looked); {
	case age < liveEvery/2:
		return logs, requests, false
	case age > liveStale: // nobody looked
		n.status, n.events, n.logs, n.requests, n.faults = nil, nil, cursor{}, cursor{}, map[string]*fault.Fault{}
	}
	n.looked = now
	return n.logs, n.requests, true
}

func (n *news) lookAtStatus(ctx context.Context) {
	status, err := n.api.status(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.note(partStatus, err) && !bytes.Equal(status, n.status) {
		n.status = status
		n.add(partStatus, status)
	}
}

func (n *news) lookAtLogs(ctx context.Context, from cursor) {
	entries, err := query.GetLogs.Ask(ctx, n.api.Bus, query.Logs{Page: from.page()})
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.note(partLogs, err) {
		return
	}
	newest := int64(0)
	if len(entries) > 0 {
		newest = entries[0].ID
	}
	if more := len(entries) > liveBatch; n.logs.move(newest) {
		n.addValue(partLogs, map[string]any{"entries": entries[:min(len(entries), liveBatch)], "more": more})
	}
}

func (n *news) lookAtRequests(ctx context.Context, from cursor) {
	page, err := query.ListRequests.Ask(ctx, n.api.Bus, query.Requests{Page: from.page()})
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.note(partRequests, err) {
		return
	}
	newest := int64(0)
	if len(page.Requests) > 0 {
		newest = page.Requests[0].Number
	}
	if more := len(page.Requests) > liveBatch; n.requests.move(newest) {
		n.addValue(partRequests, map[string]any{"requests": page.Requests[:min(len(page.Requests), liveBatch)], "more": more || page.More})
	}
}

// page asks for what is newer, at first only for the newest entry.
func (c cursor) page() query.Page {
	if !c.known {
		return query.Page{Limit: 1}
	}
	return query.Page{Limit: liveBatch + 1, After: c.at}
}

// move says whether there are news up to the given entry, 0 for none. What there was at first is no news.
func (c *cursor) move(newest int64) bool {
	news := c.known && newest > c.at
	c.known, c.at = true, max(c.at, newest)
	return news
}

// note keeps what can't be read, and says whether the part could.
func (n *news) note(part string, err error) bool {
	var f *fault.Fault
	if err != nil {
		f = fault.From(err)
	}
	before := n.faults[part]
	if n.faults[part] = f; f == nil {
		delete(n.faults, part)
	}
	if (before == nil) != (f == nil) || f != nil && !errors.Is(before, f) {
		n.addValue("fault", faultOf(part, f))
	}
	return f == nil
}

func faultOf(part string, f *fault.Fault) map[string]any {
	if f == nil {
		return map[string]any{"part": part, "code": nil, "message": nil}
	}
	return map[string]any{"part": part, "code": f.PublicCode(), "message": f.Message}
}

func (n *news) addValue(name string, value any) {
	data, err := json.Marshal(value)
	if err != nil { // all of it was read from JSON
		panic(err)
	}
	n.add(name, data)
}

func (n *news) add(name string, data []byte) {
	n.made++
	if len(n.events) == liveEvents {
		copy(n.events, n.events[1:])
		n.events = n.events[:liveEvents-1]
	}
	n.events = append(n.events, event(name, data))
}

// event gives an event of a stream; data is JSON of one line.
func event(name string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, data)
}

// now gives what a new reader needs to know: how things are, and which event is the last that it need not see.
func (n *news) now() (events [][]byte, seen uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.status != nil {
		events = append(events, event(partStatus, n.status))
	}
	for part, f := range n.faults {
		if data, err := json.Marshal(faultOf(part, f)); err == nil {
			events = append(events, event("fault", data))
		}
	}
	return events, n.made
}

// since gives the events behind one. missed says that there were more, which are not kept.
func (n *news) since(seen uint64) (events [][]byte, last uint64, missed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.made - seen
	missed = fresh > uint64(len(n.events))
	k := min(fresh, uint64(len(n.events)))
	return append(events, n.events[uint64(len(n.events))-k:]...), n.made, missed
}
