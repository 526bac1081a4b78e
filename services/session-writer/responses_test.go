package sessionwriter

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

// eachDatabase runs a test with the service on each kind of database, in the middle of a pipeline.
func eachDatabase(t *testing.T, test func(t *testing.T, p *pipe)) {
	t.Helper()
	for name, address := range map[string]func(*testing.T) string{
		"sqlite":   sqliteAddress,
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.New(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			p := newPipe(t, srv)
			s, err := New(Config{ID: "w1", Database: address(t), RetentionDays: 30}, bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
			require.NoError(t, err)
			require.NoError(t, s.Start(t.Context()))
			t.Cleanup(func() { stop(t, s) })
			test(t, p)
		})
	}
}

// keep makes the fact of a response, as the dispatcher does before it ends one.
func (p *pipe) keep(id, previous, input, output string) {
	p.t.Helper()
	r := contract.StoredResponse{
		ID: id, Previous: previous, Owner: "k:1", At: time.Now(), Input: []byte(input), Response: []byte(`{"id":"` + id + `","output":` + output + `}`),
	}
	data, err := r.Encode()
	require.NoError(p.t, err)
	for range 2 { // facts may come twice
		require.NoError(p.t, p.bus.PublishFact(p.t.Context(), subject.Stored(id), "", data))
	}
}

func ofResponses(previous string) func(*contract.Request) {
	return func(r *contract.Request) {
		r.Surface, r.Previous = contract.SurfaceResponses, previous
		r.References = previous == ""
	}
}

func as(principal string) func(*contract.Request) {
	return func(r *contract.Request) { r.Principal = principal }
}

// inputOf gives the input of a request as roles and texts.
func inputOf(t *testing.T, o outcome) string {
	t.Helper()
	var body struct {
		Input []struct {
			Role    string `json:"role"`
			Type    string `json:"type"`
			Content any    `json:"content"`
			Call    string `json:"call_id"`
		} `json:"input"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.body), &body), o.body)
	var out []string
	for _, it := range body.Input {
		said := it.Call
		if it.Content != nil {
			said = fmt.Sprint(it.Content)
		}
		out = append(out, it.Role+it.Type+":"+said)
	}
	return strings.Join(out, " ")
}

// refusalOf gives the error that a client gets.
func refusalOf(t *testing.T, o outcome) (e struct{ Message, Param, Code string }) {
	t.Helper()
	var body struct {
		Error *struct{ Message, Param, Code string } `json:"error"`
	}
	body.Error = &e
	require.NoError(t, json.Unmarshal([]byte(o.body), &body), o.body)
	return e
}

// a request goes on from a response as soon as its fact is there; two may go on from the same one.
func TestChainOfResponses(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *pipe) {
		t.Helper()
		p.keep("resp_a", "", `[{"role":"user","content":"q1"}]`, `[{"id":"msg_a_0","role":"assistant","content":"a1"},{"type":"function_call","name":"f","call_id":"c1"},{"type":"function_call","name":"f","status":"incomplete","call_id":"c2"}]`)
		o := p.ask("r1", "", `{"input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, ofResponses("resp_a"))
		require.Equal(t, "user:q1 assistant:a1 function_call:c1 function_call_output:c1", inputOf(t, o))
		require.Equal(t, 3, o.request.Inherited)
		require.Positive(t, o.request.Traits.Tokens)

		p.keep("resp_b", "resp_a", `[{"role":"user","content":"q2"}]`, `[{"role":"assistant","content":"a2"}]`)
		p.keep("resp_c", "resp_a", `[{"role":"user","content":"q3"}]`, `[]`)
		require.Equal(t, "user:q1 assistant:a1 function_call:c1 user:q2 assistant:a2 usermessage:q4", inputOf(t, p.ask("r2", "", `{"input":"q4"}`, ofResponses("resp_b"))))
		require.Equal(t, "user:q1 assistant:a1 function_call:c1 user:q3", inputOf(t, p.ask("r3", "", `{"input":[]}`, ofResponses("resp_c"))))
		require.Equal(t, "user:q1 assistant:a1 function_call:c1 user:q3", inputOf(t, p.ask("r4", "", `{"input":[]}`, ofResponses("resp_c"), as(contract.PrincipalAdmin))))
	})
}

// what is not there, not any more, or somebody else's.
func TestBrokenChains(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *pipe) {
		t.Helper()
		p.keep("resp_a", "", `[]`, `[]`)
		p.keep("resp_b", "resp_a", `[]`, `[]`)
		p.keep("resp_c", "resp_b", `[]`, `[]`)
		p.keep("resp_stray", "resp_gone", `[]`, `[]`)
		_, err := query.DeleteResponse.Ask(t.Context(), p.bus, query.ResponseID{ID: "resp_b", Principal: "k:1"})
		require.NoError(t, err)
		for i, tt := range []struct {
			previous, principal string
			has                 []string
		}{
			{"resp_x", "k:1", []string{"'resp_x' not found"}},
			{"resp_a", "k:2", []string{"'resp_a' not found"}},
			{"resp_b", "k:1", []string{"'resp_b' not found"}},
			{"resp_c", "k:1", []string{"'resp_b'", "'resp_c'", "was deleted"}},
			{"resp_stray", "k:1", []string{"'resp_gone'", "'resp_stray'", "not stored"}},
		} {
			o := p.ask("r"+string(rune('0'+i)), "", `{"input":"q"}`, ofResponses(tt.previous), as(tt.principal))
			require.Equal(t, http.StatusNotFound, o.refused, tt.previous)
			require.Equal(t, []string{"previous_response_id", "previous_response_not_found"}, []string{refusalOf(t, o).Param, refusalOf(t, o).Code})
			for _, text := range tt.has {
				require.Contains(t, refusalOf(t, o).Message, text)
			}
		}
		require.Equal(t, "usermessage:q", inputOf(t, p.ask("ok", "", `{"input":"q"}`, ofResponses("resp_a"))))
	})
}

// a chain that is too long for one request is refused.
func TestTooLongChain(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), sqliteAddress(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := &stored{store: db, facts: bustest.Start(t), life: func() time.Duration { return day }, most: 5000}
	previous := ""
	for _, id := range []string{"resp_a", "resp_b", "resp_c", "resp_d", "resp_e"} {
		_, err := s.record(t.Context(), []contract.StoredResponse{{
			ID: id, Previous: previous, Owner: "k:1", At: time.Now(), Input: []byte(`["` + strings.Repeat("x", 1200) + `"]`), Response: []byte(`{}`),
		}})
		require.NoError(t, err)
		previous = id
	}
	chain, err := s.chain(t.Context(), "resp_d", "k:1")
	require.NoError(t, err)
	require.Len(t, chain, 4)
	_, err = s.chain(t.Context(), "resp_e", "k:1")
	require.Equal(t, "context_length_exceeded", fault.From(err).Code)
}

// an item stands for itself in later requests of its owner.
func TestItemReferences(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *pipe) {
		t.Helper()
		p.keep("resp_a", "", `[{"role":"user","content":"q1"}]`, `[{"id":"msg_a_0","role":"assistant","content":"a1"}]`)
		refer := func(rid, item string, change ...func(*contract.Request)) outcome {
			body := `{"input":[{"role":"user","content":"q"},{"type":"item_reference","id":"` + item + `"},{"role":"user","content":"n"}]}`
			return p.ask(rid, "", body, append([]func(*contract.Request){ofResponses("")}, change...)...)
		}
		o := refer("r1", "msg_a_0")
		require.Equal(t, "user:q assistant:a1 user:n", inputOf(t, o))
		require.Zero(t, o.request.Inherited)
		require.Contains(t, inputOf(t, refer("r2", "msg_a_in0")), "q1")
		for i, item := range []string{"msg_a_7", "msg_unknown", "msg_b_0"} {
			o := refer("r3"+string(rune('0'+i)), item)
			require.Equal(t, http.StatusNotFound, o.refused)
			require.Equal(t, "input[1].id", refusalOf(t, o).Param)
			require.Contains(t, o.body, item)
		}
		require.Equal(t, http.StatusNotFound, refer("r4", "msg_a_0", as("k:2")).refused)
	})
}

// a response is shown, listed and deleted to its owner alone, as soon as its fact is there.
func TestStoredResponses(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *pipe) {
		t.Helper()
		p.keep("resp_a", "", `[{"role":"user","content":"one"},{"id":"own","type":"message","role":"assistant","content":[]},{"id":"own","type":"reasoning"},{"type":"function_call_output","call_id":"c","output":"x"}]`, `[1.0]`)
		mine := query.ResponseID{ID: "resp_a", Principal: "k:1"}
		body, err := query.GetResponse.Ask(t.Context(), p.bus, mine)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"resp_a","output":[1.0]}`, string(body))

		list := func(q query.InputItems) query.ItemPage {
			q.ResponseID = mine
			page, err := query.ListInputItems.Ask(t.Context(), p.bus, q)
			require.NoError(t, err)
			require.Equal(t, "list", page.Object)
			return page
		}
		ids := func(page query.ItemPage) (ids []string) {
			for _, d := range page.Data {
				ids = append(ids, rawjson.Text(rawjson.Get([]byte(d), "id")))
			}
			return ids
		}
		all := list(query.InputItems{Limit: 100, Ascending: true})
		require.Equal(t, []string{"msg_a_in0", "own", "rs_a_in2", "fco_a_in3"}, ids(all))
		require.Equal(t, []any{"msg_a_in0", "fco_a_in3", false}, []any{*all.FirstID, *all.LastID, all.More})
		require.JSONEq(t, `{"id":"msg_a_in0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"one"}]}`, string(all.Data[0]))
		page := list(query.InputItems{Limit: 3})
		require.Equal(t, []string{"fco_a_in3", "rs_a_in2", "own"}, ids(page))
		require.True(t, page.More)
		page = list(query.InputItems{Limit: 3, After: *page.LastID})
		require.Equal(t, []string{"msg_a_in0"}, ids(page))
		require.False(t, page.More)
		page = list(query.InputItems{Limit: 3, After: *page.LastID})
		require.Equal(t, query.ItemPage{Object: "list", Data: []query.Document{}}, page, "beyond the end")
		_, err = query.ListInputItems.Ask(t.Context(), p.bus, query.InputItems{ResponseID: mine, Limit: 3, After: "x"})
		require.Equal(t, 400, fault.From(err).Status())

		for _, other := range []query.ResponseID{{ID: "resp_a", Principal: "k:2"}, {ID: "resp_b", Principal: "k:1"}} {
			_, err := query.GetResponse.Ask(t.Context(), p.bus, other)
			require.Equal(t, 404, fault.From(err).Status())
			require.Contains(t, fault.From(err).Message, other.ID)
			_, err = query.DeleteResponse.Ask(t.Context(), p.bus, other)
			require.Equal(t, 404, fault.From(err).Status())
			_, err = query.ListInputItems.Ask(t.Context(), p.bus, query.InputItems{ResponseID: other, Limit: 1})
			require.Equal(t, 404, fault.From(err).Status())
		}
		gone, err := query.DeleteResponse.Ask(t.Context(), p.bus, mine)
		require.NoError(t, err)
		require.Equal(t, query.ResponseDeleted{ID: "resp_a", Object: "response", Deleted: true}, gone)
		_, err = query.GetResponse.Ask(t.Context(), p.bus, mine)
		require.Equal(t, 404, fault.From(err).Status())
		p.keep("resp_a", "", `[]`, `[]`) // a fact that comes late
		_, err = query.GetResponse.Ask(t.Context(), p.bus, mine)
		require.Equal(t, 404, fault.From(err).Status())
	})
}

// a fact that is none does not hold up the others.
func TestPoisonousResponse(t *testing.T) {
	t.Parallel()
	s := started(t, sqliteAddress(t))
	s.publish(t, subject.Stored("resp_a"), "no response")
	s.publish(t, subject.Stored("resp_a"), `{"id":"resp_b","input":2}`+"\n[]{}")
	awaitMetric(t, s.metrics.poisonous.WithLabelValues(kindResponse), 2)
	s.publish(t, subject.Stored("resp_a"), `{"id":"resp_a","input":2}`+"\n[]{}")
	awaitMetric(t, s.metrics.stored.WithLabelValues(kindResponse), 1)
}
