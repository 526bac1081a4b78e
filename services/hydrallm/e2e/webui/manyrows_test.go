package webui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-rod/rod/lib/input"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

const (
	manySessions, manyKeys, manyModels = 10_000, 1_000, 5_000
	// mostRows is what a section may hold at once, however much there is of something.
	mostRows = 500
	// atOnce is how many things are made at once.
	atOnce = 8
)

// rows counts what the page has for one thing each. An option of a list of suggestions costs no layout.
const rows = `() => document.querySelectorAll('tr, li, .logline, .check, select option').length`

// fill makes n things with an admin route, each with a body of its own.
func (x *site) fill(t *testing.T, path string, n int, body func(i int) any) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	failed := make(chan error, atOnce)
	var next atomic.Int64
	for range atOnce {
		go func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				err := errBusy
				for end := time.Now().Add(await.Limit); errors.Is(err, errBusy) && time.Now().Before(end); {
					err = x.post(t.Context(), client, path, body(int(i)))
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	var all []error
	for range atOnce {
		all = append(all, <-failed)
	}
	require.NoError(t, errors.Join(all...))
}

// errBusy is the answer of a gateway that takes too long on a busy machine. What was asked may have been done.
var errBusy = errors.New("asked again in vain")

func (x *site) post(ctx context.Context, client *http.Client, path string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("X-Admin-Key", adminKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case resp.StatusCode == http.StatusServiceUnavailable:
		err = fmt.Errorf("%w: %s: %s", errBusy, path, answer)
	case resp.StatusCode >= http.StatusMultipleChoices:
		err = fmt.Errorf("%s: %d: %s", path, resp.StatusCode, answer)
	}
	return err
}

// a section opens, is searched and holds no more than it shows, however much there is, and a line of the log with a script runs nothing.
func TestManyRows(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	names := make([]string, manyModels)
	for i := range names {
		names[i] = fmt.Sprintf("model-%04d", i)
	}
	const script = "<script>window.intruder=1</script>" // the log says which model was asked
	fake.Offer(names...)
	fake.Handle(fakellm.Talk("hello"))
	x := serve(t, pooled(fake)+fmt.Sprintf(`
upstreams: [{id: a, provider: groq, model: model-0000}]
models: [{name: %q, upstreams: [a], pipeline: true}]
`, script))
	var oldest struct {
		ID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal(x.must(t, http.MethodPost, "/v1/admin/sessions/new", map[string]any{}), &oldest))
	require.NotEmpty(t, oldest.ID)
	x.fill(t, "/v1/admin/sessions/new", manySessions, func(int) any { return map[string]any{} })
	status, answer := x.chat(t, script, "the-lamp-of-the-harbour", "Is it lit?") // needs a key from now on
	require.Equal(t, http.StatusOK, status, "%s", answer)
	x.fill(t, "/v1/admin/client-keys", manyKeys, func(i int) any { return map[string]any{"name": fmt.Sprintf("key-%04d", i)} })

	await.True(t, func() bool {
		return bytes.Contains(x.must(t, http.MethodGet, "/v1/admin/onboarding", nil), []byte("model-4999"))
	}, "the models are discovered")
	v := stranger(t, x.url+"/")
	v.enter(adminKey)
	bounded := func(where string) {
		t.Helper()
		require.False(t, v.holds(`() => 'intruder' in window`), where)
		var n int
		require.NoError(t, json.Unmarshal(v.eval(rows), &n))
		require.LessOrEqual(t, n, mostRows, where)
	}
	v.see("dialog .modellist label", "model-0000")
	bounded("the first steps")
	v.write("dialog input[type=search]", "model-4999")
	v.see("dialog .modellist label", "model-4999")
	v.gone("dialog .modellist label", "model-0000")
	v.click("dialog [data-test=skip]")
	for _, id := range sections {
		v.section(id)
		v.until(`() => !document.querySelector('main .skeleton')`)
		bounded(id)
	}

	v.section("sessions")
	v.see("[data-session=the-lamp-of-the-harbour]", "")
	bounded("sessions")
	v.write("[data-test=search]", "lamp-of-the")
	v.until(`() => document.querySelectorAll('[data-test=sessions] tr').length === 1`)
	v.see("[data-session=the-lamp-of-the-harbour]", "")
	v.write("[data-test=import-id]", oldest.ID) // which is not among the newest
	v.click("[data-test=import]")
	v.see("dialog .mono", oldest.ID)
	v.clickOn("dialog .bar button", "")

	v.section("clientkeys")
	v.see("[data-test=client-keys] .name", "key-")
	bounded("clientkeys")
	for _, name := range []string{"key-0000", "key-0999"} {
		v.write("[data-test=search]", name)
		v.until(`(name) => { const all = [...document.querySelectorAll('[data-test=client-keys] tbody tr')]; return all.length > 0 && all.every((e) => e.textContent.includes(name)); }`, name)
	}

	v.section("providers")
	v.see("[data-provider=groq] summary", "5,001 models") // with groq/auto; without it until the list is there
	bounded("providers")
	v.section("playground")
	v.see("input[data-test=model]", "")
	bounded("playground")
	v.until(`() => document.querySelectorAll("main datalist option").length > 5000`)
	v.write("input[data-test=model]", "groq/model-4999")
	v.press(input.Enter)
	v.see("main dd", "groq")

	v.section("logs")
	v.see(".logline", "")
	bounded("logs")
	v.write("[data-test=search]", "<script>")
	v.see(".logline .text", "<script>")
	bounded("a line of the log with a script")
}
