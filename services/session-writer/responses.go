package sessionwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/surface/responses"
)

// stored reads and writes stored responses so that whoever reads one sees it as soon as its fact is in the stream, whether a batch with it was written or
// not, and by whom.
type stored struct {
	store *store.Store
	facts facts
	life  func() time.Duration // of a response
	most  int                  // bytes that a request inherits
}

// record stores responses.
func (s *stored) record(ctx context.Context, list []contract.StoredResponse) (int, error) {
	return s.store.RecordResponses(ctx, list, s.life())
}

// catchUp stores a response whose fact may not be stored yet.
func (s *stored) catchUp(ctx context.Context, id string) (found bool, err error) {
	f, ok, err := s.facts.NextFact(ctx, subject.Stored(id), 1)
	if err != nil || !ok {
		return false, err
	}
	r, err := contract.ParseStoredResponse(f.Data)
	if err != nil || r.ID != id { // what can't be read is buried by who writes the batches
		return false, nil //nolint:nilerr // see above
	}
	_, err = s.record(ctx, []contract.StoredResponse{r})
	return err == nil, err
}

// find gives a response that a principal may see. The error is store.ErrNoResponse for others.
func (s *stored) find(ctx context.Context, id, principal string) (store.Response, error) {
	r, err := s.store.Response(ctx, id)
	if errors.Is(err, store.ErrNoResponse) {
		found, failed := s.catchUp(ctx, id)
		if failed != nil {
			return r, failed
		}
		if found {
			r, err = s.store.Response(ctx, id)
		}
	}
	if err == nil && (r.Deleted || !visible(&r, principal)) {
		return store.Response{}, store.ErrNoResponse
	}
	return r, err
}

// visible says whether a principal may see a response. The admin sees all.
func visible(r *store.Response, principal string) bool {
	return r.Owner == principal || principal == contract.PrincipalAdmin
}

// maxInherited bounds what a request inherits from stored responses, in bytes.
const maxInherited = 16 << 20

// chain gives the responses that a request goes on from, oldest first. A *fault.Fault is the client's.
func (s *stored) chain(ctx context.Context, id, principal string) (chain []store.Response, err error) {
	if _, err := s.find(ctx, id, principal); errors.Is(err, store.ErrNoResponse) {
		return nil, broken(nil, id, "")
	} else if err != nil {
		return nil, err
	}
	size := s.most
	for next := id; next != ""; {
		part, err := s.store.ResponseChain(ctx, next, size)
		if err != nil {
			return nil, err
		}
		if len(part) == 0 || part[0].ID != next { // its fact is not stored yet, or there is none
			if _, err := s.find(ctx, next, contract.PrincipalAdmin); errors.Is(err, store.ErrNoResponse) {
				return nil, broken(chain, next, "was not stored, or has expired")
			} else if err != nil {
				return nil, err
			}
			continue
		}
		for i := range part {
			if part[i].ID != next { // the one before it has expired
				part = part[:i]
				break
			}
			next = part[i].Previous
			if part[i].Deleted {
				return nil, broken(append(chain, part[:i]...), part[i].ID, "was deleted")
			}
			if size -= len(part[i].Input) + len(part[i].Body); size < 0 {
				return nil, &fault.Fault{
					Kind: fault.Invalid, Param: "previous_response_id", Code: "context_length_exceeded",
					Message: fmt.Sprintf("The conversation that '%s' ends is longer than %d MiB. Begin a new one.", id, s.most>>20),
				}
			}
		}
		chain = append(chain, part...)
	}
	slices.Reverse(chain)
	return chain, nil
}

// broken is the error about a chain of which a response is missing.
func broken(chain []store.Response, id, why string) *fault.Fault {
	message := "Previous response with id '" + id + "' not found."
	if n := len(chain); n > 0 {
		message = fmt.Sprintf("The response '%s', which '%s' goes on from, %s.", id, chain[n-1].ID, why)
	}
	return &fault.Fault{Kind: fault.NotFound, Param: "previous_response_id", Code: "previous_response_not_found", Message: message}
}

// resolve puts stored items into the body of a request: those of the responses that it goes on from, and those that it refers to. A *fault.Fault is the
// client's.
func (s *stored) resolve(ctx context.Context, r *contract.Request, body []byte) ([]byte, error) {
	var links []responses.Link
	if r.Previous != "" {
		chain, err := s.chain(ctx, r.Previous, r.Principal)
		if err != nil {
			return nil, err
		}
		for i := range chain {
			links = append(links, responses.Link{Input: []byte(chain[i].Input), Output: rawjson.Get([]byte(chain[i].Body), "output")})
		}
	}
	read := map[string]map[string][]byte{}
	edited, inherited, err := responses.Continue(body, links, func(ref responses.Reference) ([]byte, error) { return s.item(ctx, r.Principal, ref, read) })
	if bad, ok := errors.AsType[*openai.RequestError](err); ok {
		return nil, &fault.Fault{Kind: fault.NotFound, Message: bad.Message, Param: bad.Param, Code: bad.Code}
	}
	if err != nil {
		return nil, err
	}
	r.Inherited = inherited
	return edited, nil
}

// item gives the item that a reference stands for. read holds the items of the responses that were read, by their ids.
func (s *stored) item(ctx context.Context, principal string, ref responses.Reference, read map[string]map[string][]byte) ([]byte, error) {
	id, ok := contract.ResponseOfItem(ref.Item)
	if !ok {
		return nil, responses.NotFound(ref)
	}
	items, known := read[id]
	if !known {
		r, err := s.find(ctx, id, principal)
		if err != nil && !errors.Is(err, store.ErrNoResponse) {
			return nil, err
		}
		items = itemsOf(&r) // none, if it is not there
		read[id] = items
	}
	if it := items[ref.Item]; it != nil {
		return it, nil
	}
	return nil, responses.NotFound(ref)
}

// itemsOf gives the items of a response and of its request by their ids.
func itemsOf(r *store.Response) map[string][]byte {
	items := map[string][]byte{}
	for _, it := range listed(r) {
		items[it.ID] = it.Body
	}
	output := rawjson.Get([]byte(r.Body), "output")
	for span := range rawjson.Elements(output) {
		it := span.Of(output)
		items[rawjson.Text(rawjson.Get(it, "id"))] = it
	}
	return items
}

// listed gives the items of the request of a response.
func listed(r *store.Response) []responses.Listed {
	return responses.ListInput(strings.TrimPrefix(r.ID, contract.ResponseID("")), []byte(r.Input))
}

// handle answers questions about stored responses.
func (s *stored) handle(h query.Handlers) {
	query.GetResponse.Handle(h, func(ctx context.Context, q query.ResponseID) (query.Document, error) {
		r, err := s.find(ctx, q.ID, q.Principal)
		return query.Document(r.Body), absent(err, q.ID)
	})
	query.DeleteResponse.Handle(h, func(ctx context.Context, q query.ResponseID) (query.ResponseDeleted, error) {
		return query.ResponseDeleted{ID: q.ID, Object: "response", Deleted: true}, absent(s.remove(ctx, q), q.ID)
	})
	query.ListInputItems.Handle(h, func(ctx context.Context, q query.InputItems) (query.ItemPage, error) {
		r, err := s.find(ctx, q.ID, q.Principal)
		if err != nil {
			return query.ItemPage{}, absent(err, q.ID)
		}
		return page(listed(&r), q)
	})
}

// remove deletes a response, from the stream too.
func (s *stored) remove(ctx context.Context, q query.ResponseID) error {
	if _, err := s.find(ctx, q.ID, q.Principal); err != nil {
		return err
	}
	if err := s.facts.PurgeFacts(ctx, subject.Stored(q.ID)); err != nil {
		return err
	}
	return s.store.DeleteResponse(ctx, q.ID)
}

// absent makes the absence of a response what callers know it by.
func absent(err error, id string) error {
	if errors.Is(err, store.ErrNoResponse) {
		return &fault.Fault{Kind: fault.NotFound, Code: "response_not_found", Message: "Response with id '" + id + "' not found."}
	}
	return err
}

// maxPage bounds the items of one page, in bytes: it is one message.
const maxPage = 4 << 20

// page cuts a part out of a list of items.
func page(items []responses.Listed, q query.InputItems) (query.ItemPage, error) {
	p := query.ItemPage{Object: "list", Data: []query.Document{}}
	if !q.Ascending {
		slices.Reverse(items)
	}
	if q.After != "" {
		i := slices.IndexFunc(items, func(it responses.Listed) bool { return it.ID == q.After })
		if i < 0 {
			return p, &fault.Fault{Kind: fault.Invalid, Param: "after", Code: openai.CodeInvalidValue, Message: "'after': there is no item '" + q.After + "' in the input."}
		}
		items = items[i+1:]
	}
	size := 0
	for i := range items {
		if size += len(items[i].Body); i >= q.Limit || i > 0 && size > maxPage {
			p.More = true
			break
		}
		p.Data = append(p.Data, query.Document(items[i].Body))
		p.LastID = &items[i].ID
	}
	if len(p.Data) > 0 {
		p.FirstID = &items[0].ID
	}
	return p, nil
}
