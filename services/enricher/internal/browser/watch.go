package browser

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"
)

// Limits of one page. Who passes that of requests or documents gets no more of them; the others end the page.
const (
	maxRequests  = 1000
	maxDocuments = 50
	maxBytes     = 64 << 20

	maxRefresh = 3 * time.Second // a page that goes elsewhere later than this is read before
)

// unawaited are the types of requests that a page does not need to be complete, or that have no end.
var unawaited = []string{"EventSource", "WebSocket", "Ping", "Prefetch"}

var (
	errCrashed = errors.New("the page has crashed")
	errBytes   = errors.New("the page loads too much")
)

// watch reads the events of one page: it decides about its requests, and knows when it has settled. What has no comment belongs to run.
type watch struct {
	tab     *tab
	ctx     context.Context //nolint:containedctx // it is the lifetime of the page
	settled chan struct{}   // closed when there is nothing more to wait for
	status  atomic.Int32    // of the document

	navigated bool   // a document is there
	loaded    bool   // and has stopped loading
	scheduled bool   // to go to another document, soon
	leaving   bool   // for it
	shown     loader // of the document that is there
	answered  answer // the last to a request for the page itself, which need not become the document: it may be empty, or a download
	inFlight  map[string]networkEvent
	asked     map[proto.FetchRequestID]struct{} // requests that the proxy has asked for a password for
	requests  int
	documents int
	bytes     float64
	over      bool // settled is closed

	calm *time.Timer // fires when nothing was loaded for a while
	last *time.Timer // fires when waiting has no more sense
	end  time.Time   // after which last does not go
}

func newWatch(ctx context.Context, t *tab) *watch {
	return &watch{
		tab: t, ctx: ctx, settled: make(chan struct{}), inFlight: map[string]networkEvent{}, asked: map[proto.FetchRequestID]struct{}{},
		calm: time.NewTimer(t.cfg.Load), last: time.NewTimer(t.cfg.Load),
		end: time.Now().Add(t.cfg.Load + t.cfg.Settle),
	}
}

// run reads events until the tab is closed. It waits for nothing else: others wait for it.
func (w *watch) run() {
	w.calm.Stop()
	defer w.calm.Stop()
	defer w.last.Stop()
	for {
		select {
		case event := <-w.tab.session.events:
			w.take(event)
		case <-w.calm.C:
			w.settle()
		case <-w.last.C:
			if w.navigated {
				w.settle()
			} else {
				w.last.Reset(time.Second) // the document itself is slow: the time of the page decides
			}
		case <-w.tab.session.gone:
			return
		}
	}
}

func (w *watch) settle() {
	if !w.over {
		w.over = true
		close(w.settled)
	}
}

// load notes that the document is loaded, which is told after what comes of it, as a refresh that is due now; the load event is told before. A page that
// goes from one to the next for ever is read when the time for one is over.
func (w *watch) load() {
	if w.navigated && !w.loaded {
		w.loaded = true
		w.last.Reset(min(w.tab.cfg.Settle, time.Until(w.end)))
	}
}

// loader is the number of a document, and of the navigation that became it.
type loader string

// answer is that to the request for a document.
type answer struct {
	loader loader
	status int
}

// networkEvent is what is needed of an event of the network, which has everything about the request.
type networkEvent struct {
	RequestID  string            `json:"requestId"`
	LoaderID   loader            `json:"loaderId"` // "" = a worker asks
	Type       string            `json:"type"`
	FrameID    proto.PageFrameID `json:"frameId"`
	DataLength float64           `json:"dataLength"`
	Response   struct {
		Status int `json:"status"`
	} `json:"response"`
}

// frameEvent is what is needed of an event about a frame.
type frameEvent struct {
	FrameID proto.PageFrameID `json:"frameId"`
	Type    string            `json:"navigationType"`
}

func (w *watch) take(event *cdp.Event) {
	switch event.Method {
	case "Fetch.requestPaused":
		take(event, w.request)
	case "Fetch.authRequired":
		take(event, w.authenticate)
	case "Page.javascriptDialogOpening":
		w.tab.session.tell(proto.PageHandleJavaScriptDialog{Accept: false})
	case "Page.frameScheduledNavigation": // by a script, or by the page itself after a delay
		take(event, func(e *proto.PageFrameScheduledNavigation) {
			w.scheduled = w.scheduled || e.FrameID == w.tab.frame && e.Delay <= maxRefresh.Seconds()
		})
	case "Page.frameRequestedNavigation", "Page.frameStartedNavigating":
		take(event, func(e *frameEvent) { w.leaving = w.leaving || e.FrameID == w.tab.frame && e.Type != "sameDocument" })
	case "Page.frameClearedScheduledNavigation":
		take(event, func(e *frameEvent) { w.scheduled = w.scheduled && e.FrameID != w.tab.frame })
	case "Page.frameStoppedLoading":
		take(event, func(e *frameEvent) { // a download on the way has ended the loading without an event
			if e.FrameID == w.tab.frame {
				w.leaving = false
				w.load()
			}
		})
	case "Page.frameNavigated":
		take(event, func(e *proto.PageFrameNavigated) { w.navigate(e.Frame) })
	case "Page.frameDetached":
		take(event, func(e *frameEvent) { w.forget(func(r networkEvent) bool { return r.FrameID == e.FrameID }) })
	case "Network.requestWillBeSent":
		take(event, func(e *networkEvent) { // the end of what a worker asks for is told to others
			if e.LoaderID != "" && !slices.Contains(unawaited, e.Type) {
				w.inFlight[e.RequestID] = *e
			}
		})
	case "Network.responseReceived":
		take(event, func(e *networkEvent) {
			if e.Type == "Document" && e.FrameID == w.tab.frame {
				w.answered = answer{e.LoaderID, e.Response.Status}
				w.note()
			}
		})
	case "Network.dataReceived":
		take(event, func(e *networkEvent) {
			if w.bytes += e.DataLength; w.bytes > maxBytes {
				w.tab.cancel(errBytes)
			}
		})
		return // says nothing about what is in flight
	case "Network.loadingFinished", "Network.loadingFailed":
		take(event, func(e *networkEvent) { delete(w.inFlight, e.RequestID) })
	case "Inspector.targetCrashed", "Inspector.detached":
		w.tab.cancel(errCrashed)
	default:
		return
	}
	if w.loaded && !w.scheduled && !w.leaving && len(w.inFlight) == 0 {
		w.calm.Reset(quiet)
	} else {
		w.calm.Stop()
	}
}

// navigate notes that a frame has another document. How the requests of the one before have ended is not told: its frame is often gone by then.
func (w *watch) navigate(frame *proto.PageFrame) {
	if frame == nil || !w.navigated && frame.URL == "about:blank" { // which every tab begins with
		return
	}
	top, document := frame.ID == w.tab.frame, loader(frame.LoaderID)
	w.forget(func(r networkEvent) bool { return (top || r.FrameID == frame.ID) && r.LoaderID != document })
	if top {
		w.navigated, w.loaded, w.scheduled, w.leaving = true, false, false, false
		w.shown = document
		w.status.Store(0)
		w.note()
	}
}

// note takes the status over if it is that of the document.
func (w *watch) note() {
	if w.answered.loader == w.shown {
		w.status.Store(int32(w.answered.status))
	}
}

// forget waits no longer for the requests that nobody waits for any more.
func (w *watch) forget(left func(networkEvent) bool) {
	maps.DeleteFunc(w.inFlight, func(_ string, r networkEvent) bool { return left(r) })
}

func take[E any](event *cdp.Event, with func(*E)) {
	e := new(E)
	if json.Unmarshal(event.Params, e) == nil {
		with(e)
	}
}

// request decides about a request before it is sent, and again at each redirect.
func (w *watch) request(e *proto.FetchRequestPaused) {
	w.requests++
	if w.over { // what is there is being read, and may not be replaced meanwhile
		w.refuse(e.RequestID)
		return
	}
	switch e.ResourceType {
	case proto.NetworkResourceTypeDocument:
		w.documents++
		if w.documents > maxDocuments {
			w.refuse(e.RequestID)
			return
		}
		// The check looks names up, which takes its time.
		w.tab.watching.Go(func() { w.document(e) })
	case proto.NetworkResourceTypeImage, proto.NetworkResourceTypeMedia, proto.NetworkResourceTypeFont, proto.NetworkResourceTypeTextTrack,
		proto.NetworkResourceTypePing, proto.NetworkResourceTypeCSPViolationReport, proto.NetworkResourceTypePrefetch, proto.NetworkResourceTypeManifest,
		proto.NetworkResourceTypeSignedExchange:
		w.refuse(e.RequestID)
	default:
		if w.requests > maxRequests {
			w.refuse(e.RequestID)
			return
		}
		w.tab.session.tell(proto.FetchContinueRequest{RequestID: e.RequestID})
	}
}

// document lets a document load if its address may be loaded. If it is the page itself that goes where it may not, the page ends.
func (w *watch) document(e *proto.FetchRequestPaused) {
	_, err := w.tab.cfg.Check(w.ctx, e.Request.URL)
	if err == nil {
		w.tab.session.tell(proto.FetchContinueRequest{RequestID: e.RequestID})
		return
	}
	if e.FrameID == w.tab.frame {
		w.tab.cancel(err)
	}
	w.refuse(e.RequestID)
}

func (w *watch) refuse(id proto.FetchRequestID) {
	w.tab.session.tell(proto.FetchFailRequest{RequestID: id, ErrorReason: proto.NetworkErrorReasonAborted})
}

// authenticate answers the proxy, once for each request, and no server.
func (w *watch) authenticate(e *proto.FetchAuthRequired) {
	answer := &proto.FetchAuthChallengeResponse{Response: proto.FetchAuthChallengeResponseResponseCancelAuth}
	_, before := w.asked[e.RequestID]
	w.asked[e.RequestID] = struct{}{}
	if proxy := w.tab.cfg.Proxy; proxy.User != "" && !before && e.AuthChallenge != nil && e.AuthChallenge.Source == proto.FetchAuthChallengeSourceProxy {
		answer = &proto.FetchAuthChallengeResponse{
			Response: proto.FetchAuthChallengeResponseResponseProvideCredentials, Username: proxy.User, Password: proxy.Password,
		}
	}
	w.tab.session.tell(proto.FetchContinueWithAuth{RequestID: e.RequestID, AuthChallengeResponse: answer})
}
