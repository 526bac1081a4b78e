package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-rod/rod/lib/proto"
)

const (
	maxHTML  = 5 << 20 // bytes of a document
	maxReads = 5
	quiet    = 500 * time.Millisecond // without requests: then a page has settled
)

// tab is one page in a context of its own, from its opening to its closing.
type tab struct {
	process *process
	cfg     *Config

	context  proto.BrowserBrowserContextID // "" = none was made
	frame    proto.PageFrameID             // of the document
	session  *session
	watching sync.WaitGroup // what reads events and checks addresses
	cancel   context.CancelCauseFunc
}

// show opens the tab, goes to the address and gives the document once it has settled.
func (t *tab) show(ctx context.Context, address string) (*Page, error) {
	ctx, t.cancel = context.WithCancelCause(ctx)
	stopped := context.AfterFunc(t.process.ctx, func() { t.cancel(context.Cause(t.process.ctx)) }) //nolint:contextcheck // a second context that ends it
	defer stopped()
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	w := newWatch(ctx, t)
	t.watching.Go(w.run)
	if err := t.restrict(ctx); err != nil {
		return nil, err
	}
	var answer proto.PageNavigateResult
	if err := t.session.call(ctx, proto.PageNavigate{URL: address}, &answer); err != nil {
		return nil, err
	}
	if answer.ErrorText != "" {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause // an address that may not be loaded
		}
		return nil, errors.New(answer.ErrorText)
	}
	select {
	case <-w.settled:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	page, err := t.read(ctx)
	for tries := 1; err != nil && ctx.Err() == nil && tries < maxReads; tries++ {
		page, err = t.read(ctx) // another document has come in between
	}
	if err != nil {
		return nil, err
	}
	page.Status = int(w.status.Load())
	// Scripts can lead a page elsewhere, and an address can mean something else by now.
	where, err := t.cfg.Check(ctx, page.URL)
	if err != nil {
		return nil, err
	}
	page.URL = where.String()
	return page, nil
}

// open makes a context and a page in it. A context is waited for even if nobody needs it any more: it has to be closed.
func (t *tab) open(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(t.process.ctx, t.cfg.answer, errHung)
	defer cancel()
	var made proto.TargetCreateBrowserContextResult
	err := t.process.root().call(limited, proto.TargetCreateBrowserContext{DisposeOnDetach: true}, &made) //nolint:contextcheck // see above
	if err != nil {
		t.process.judge(err)
		return err
	}
	t.context = made.BrowserContextID
	var target proto.TargetCreateTargetResult
	var attached proto.TargetAttachToTargetResult
	for _, ask := range []struct {
		question proto.Request
		answer   any
	}{
		{proto.BrowserSetDownloadBehavior{Behavior: proto.BrowserSetDownloadBehaviorBehaviorDeny, BrowserContextID: t.context}, nil},
		// No permission is granted, and all others are refused.
		{proto.BrowserGrantPermissions{Permissions: []proto.BrowserPermissionType{}, BrowserContextID: t.context}, nil},
		{proto.TargetCreateTarget{URL: "about:blank", BrowserContextID: t.context}, &target},
	} {
		if err := t.process.root().call(ctx, ask.question, ask.answer); err != nil {
			return err
		}
	}
	if err := t.process.root().call(ctx, proto.TargetAttachToTarget{TargetID: target.TargetID, Flatten: true}, &attached); err != nil {
		return err
	}
	t.frame = proto.PageFrameID(target.TargetID)
	t.session = t.process.listen(attached.SessionID)
	return nil
}

// restrict says what the page may do, and asks for the events that the watch needs.
func (t *tab) restrict(ctx context.Context) error {
	none := new(int)
	for _, question := range []proto.Request{
		proto.PageEnable{},
		proto.InspectorEnable{},
		proto.NetworkEnable{MaxTotalBufferSize: none, MaxResourceBufferSize: none},
		proto.NetworkSetBypassServiceWorker{Bypass: true},
		proto.NetworkSetUserAgentOverride{UserAgent: t.process.userAgent},
		proto.FetchEnable{HandleAuthRequests: true, Patterns: []*proto.FetchRequestPattern{{URLPattern: "*"}}},
	} {
		if err := t.session.call(ctx, question, nil); err != nil {
			return err
		}
	}
	return nil
}

// readDocument gives the document and where it is, at one moment. The getters are those of the browser: a page may name an element like a member of
// its document, which hides the member.
const readDocument = `(() => {
	const root = Object.getOwnPropertyDescriptor(Document.prototype, 'documentElement').get.call(document);
	return {url: location.href, html: root ? root.outerHTML.slice(0, %d) : ''};
})()`

// read takes the document, in a world that scripts of the page can't change.
func (t *tab) read(ctx context.Context) (*Page, error) {
	var world proto.PageCreateIsolatedWorldResult
	if err := t.session.call(ctx, proto.PageCreateIsolatedWorld{FrameID: t.frame}, &world); err != nil {
		return nil, err
	}
	var answer struct {
		Result struct {
			Value struct{ URL, HTML string } `json:"value"`
		} `json:"result"`
		ExceptionDetails any `json:"exceptionDetails"`
	}
	question := proto.RuntimeEvaluate{Expression: fmt.Sprintf(readDocument, maxHTML), ContextID: world.ExecutionContextID, ReturnByValue: true, Silent: true}
	if err := t.session.call(ctx, question, &answer); err != nil {
		return nil, err
	}
	if answer.ExceptionDetails != nil {
		return nil, errors.New("the document can't be read")
	}
	value := answer.Result.Value
	if len(value.HTML) > maxHTML {
		value.HTML = strings.ToValidUTF8(value.HTML[:maxHTML], "")
	}
	return &Page{URL: value.URL, HTML: []byte(value.HTML)}, nil
}

// close closes the context with all that belongs to it. A Chromium that does not do so within the time for answers hangs.
func (t *tab) close() {
	t.cancel(context.Canceled)
	if t.session != nil {
		t.session.leave()
	}
	t.watching.Wait()
	if t.context == "" {
		return
	}
	ctx, cancel := context.WithTimeoutCause(t.process.ctx, t.cfg.answer, errHung)
	defer cancel()
	t.process.judge(t.process.root().call(ctx, proto.TargetDisposeBrowserContext{BrowserContextID: t.context}, nil))
}
