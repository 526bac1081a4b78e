package webui

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// a key with a budget is made in the page and shown once. It works until the budget is used up, which the page shows, too, and not
// any more when it is revoked.
func TestClientKeyWithBudget(t *testing.T) {
	t.Parallel()
	fake := fakellm.Start(t)
	fake.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Chat("hello") }) // of five tokens
	x := serve(t, model(fake))
	v := operator(t, x.url+"/")
	v.section("clientkeys")
	v.click("[data-test=make-key]")
	v.write("dialog [data-test=key-name]", "harbour <b>office</b>")
	v.write("dialog [data-test=budget]", "8")
	v.choose("dialog [data-test=priority]", "low")
	v.click("dialog [data-test=create-key]")
	v.see("dialog [data-test=made-key]", "")
	var key string
	require.NoError(t, json.Unmarshal(v.eval(`() => document.querySelector('[data-test=made-key]').textContent`), &key))
	require.NotEmpty(t, key)
	v.clickOn("dialog .bar button", "")
	v.until(`() => !document.querySelector('dialog')`)
	v.see("[data-test=client-keys] .name", "harbour <b>office</b>")
	v.see("[data-test=client-keys] td", "low priority")
	require.NotContains(t, v.text(), key)
	var last string
	await.True(t, func() bool { // what was used is known when an answer has been counted
		var status int
		status, last = ask(t, x, key)
		return status == http.StatusTooManyRequests
	}, "the budget runs out")
	require.Contains(t, last, "insufficient_quota")
	v.section("overview")
	await.True(t, func() bool {
		v.section("settings")
		v.section("clientkeys")
		v.see("[data-test=client-keys] .name", "")
		return v.holds(`() => !!document.querySelector('[data-test=client-keys] .track .over')`)
	}, "the page shows that the budget is used up")
	v.click("[data-test=client-keys] [data-test=revoke]")
	v.click("dialog [data-test=confirm]")
	await.True(t, func() bool {
		status, _ := ask(t, x, key)
		return status == http.StatusUnauthorized
	}, "the key is revoked")
	for _, id := range sections {
		v.section(id)
		require.NotContains(t, v.text(), key, id)
	}
}

// ask sends a question with the key of a client.
func ask(t *testing.T, x *site, key string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, x.url+"/v1/chat/completions",
		strings.NewReader(`{"model":"demo","messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}
