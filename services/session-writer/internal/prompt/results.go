package prompt

import (
	"slices"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// noResult is what a model is told of a call whose result never came.
const noResult = "There is no result: the call was not carried out, or its result is not known."

// settleCalls gives every call of the history that has no result one that says so: a user may go on without the results, and they may be in a turn
// that failed, but providers refuse a call without one. What the client sent itself stays as it is.
func settleCalls(list []*message) []*message {
	settled := make([]*message, 0, len(list))
	for i, m := range list {
		settled = append(settled, m)
		if !m.history {
			continue
		}
		for _, id := range m.called {
			if !answered(list[i+1:], id) {
				settled = append(settled, resultless(id))
			}
		}
	}
	return settled
}

// answered says whether a call has its result in what follows it. Some servers give the same ids in each turn: a later call has a result of its own.
func answered(rest []*message, id string) bool {
	for _, m := range rest {
		switch {
		case m.resultOf == id:
			return true
		case slices.Contains(m.called, id):
			return false
		}
	}
	return false
}

func resultless(id string) *message {
	body := rawjson.AppendString([]byte(`{"role":"tool","tool_call_id":`), id)
	body = append(rawjson.AppendString(append(body, `,"content":`...), noResult), '}')
	return &message{Message: contract.Message{Body: body}, role: roleTool}
}
