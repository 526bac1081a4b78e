package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

// Limits of a request that adds keys.
const (
	maxKeys     = 1000
	maxKeySize  = 4096    // bytes
	maxKeysBody = 8 << 20 // bytes
)

// addKeys gives new keys to the pool of a provider. On the bus they travel sealed.
func addKeys(x *exchange) error {
	a := x.api
	if a.Seal == nil {
		return &fault.Fault{
			Kind: fault.Unavailable, Code: "admin_key_missing",
			Message: "Keys can't be added because no admin key is configured to protect them with (server.admin_key or ADMIN_API_KEY)",
		}
	}
	body, err := upload.Read(x.RequestCtx, min(a.MaxBody, maxKeysBody))
	if err != nil {
		return err
	}
	defer func() {
		clear(body) // the buffer is used again
		upload.Release(body)
	}()
	add, f := scanNewKeys(body)
	if f != nil {
		return f
	}
	question := query.NewKeys{Provider: add.provider, Keys: make([][]byte, 0, len(add.keys))}
	for _, key := range add.keys {
		sealed, err := a.Seal([]byte(key), add.provider)
		if err != nil {
			return fmt.Errorf("sealing a key: %w", err)
		}
		question.Keys = append(question.Keys, sealed)
	}
	added, err := query.AddKeys.Ask(a.Queries(), a.Bus, question)
	if err != nil {
		return err
	}
	x.note("provider", add.provider) // that there is: anything else may be a key in the wrong place
	x.note("added", added.Added)
	return showJSON(x, added)
}

// removeKey takes a key that was added out of the pool of a provider. Its body names the key as the status shows it.
func removeKey(x *exchange) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	var q query.KeyName
	if err := json.Unmarshal(body, &q); err != nil || q.Provider == "" {
		return invalid("", openai.CodeInvalidValue, "The body must be like {\"provider\": \"groq\", \"index\": 2}")
	}
	if err := pass(x, query.RemoveKey, q); err != nil {
		return err
	}
	x.note("provider", q.Provider)
	x.note("index", q.Index)
	return nil
}

// newKeys is what a request wants to add.
type newKeys struct {
	provider string
	keys     []string
}

// scanNewKeys reads {"provider": "...", "keys": ["...", ...]}. White space around keys and blank keys do not count. No fault holds
// anything of a key.
func scanNewKeys(body []byte) (newKeys, *fault.Fault) {
	s := newKeysScan{s: rawjson.Scan(body), body: body}
	if s.s.Enter('{') {
		for s.s.Member() {
			s.member()
		}
	} else {
		s.fail("", openai.CodeInvalidType, "The request body must be a JSON object")
	}
	switch {
	case !s.s.End():
		return newKeys{}, invalid("", openai.CodeInvalidJSON, "The request body is not valid JSON")
	case s.fault != nil:
		return newKeys{}, s.fault
	case s.provider == "":
		return newKeys{}, invalid("provider", openai.CodeMissing, "'provider' is missing")
	case !s.hasKeys:
		return newKeys{}, invalid("keys", openai.CodeMissing, "'keys' is missing")
	}
	return s.newKeys, nil
}

// newKeysScan is a request while it is being read. The first fault counts.
type newKeysScan struct {
	newKeys
	s           rawjson.Scanner
	body        []byte
	hasProvider bool
	hasKeys     bool
	fault       *fault.Fault
}

func (s *newKeysScan) fail(param, code, message string) {
	if s.fault == nil {
		s.fault = invalid(param, code, message)
	}
}

func invalid(param, code, message string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: param, Code: code, Message: message}
}

func (s *newKeysScan) member() {
	switch name := string(s.s.Key()); name {
	case "provider":
		s.once(name, &s.hasProvider)
		text, ok := s.text()
		s.provider = strings.TrimSpace(text)
		switch {
		case !ok:
			s.fail(name, openai.CodeInvalidType, "'provider' must be a string")
		case len(text) > contract.MaxName:
			s.fail(name, openai.CodeInvalidValue, "'provider' is too long")
		}
	case "keys":
		s.once(name, &s.hasKeys)
		if !s.s.Enter('[') {
			s.fail(name, openai.CodeInvalidType, "'keys' must be an array of strings")
			return
		}
		for n := 0; s.s.Element(); n++ {
			s.key(n)
		}
	default:
		s.s.Skip()
	}
}

func (s *newKeysScan) once(name string, seen *bool) {
	if *seen {
		s.fail(name, openai.CodeDuplicate, "'"+name+"' is given more than once")
	}
	*seen = true
}

// text reads a string.
func (s *newKeysScan) text() (text string, ok bool) {
	ok = s.s.Kind() == '"'
	return rawjson.Text(s.s.Skip().Of(s.body)), ok
}

func (s *newKeysScan) key(n int) {
	param := fmt.Sprintf("keys[%d]", n)
	key, ok := s.text()
	key = strings.TrimSpace(key)
	switch {
	case !ok:
		s.fail(param, openai.CodeInvalidType, "'"+param+"' must be a string")
	case key == "":
	case len(key) > maxKeySize:
		s.fail(param, openai.CodeInvalidValue, fmt.Sprintf("'%s' is longer than %d bytes", param, maxKeySize))
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }): // could not travel in a header
		s.fail(param, openai.CodeInvalidValue, "'"+param+"' holds a character that is not printable ASCII")
	case len(s.keys) == maxKeys:
		s.fail("keys", openai.CodeInvalidValue, fmt.Sprintf("'keys' holds more than %d keys", maxKeys))
	default:
		s.keys = append(s.keys, key)
	}
}
