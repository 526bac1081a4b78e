package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// mayAsk says whether the caller's key allows a model. Not to name one is to ask for "auto".
func (x *exchange) mayAsk(model string) *fault.Fault {
	model = cmp.Or(model, modellist.Auto)
	if x.key == nil || x.key.Allows(model) {
		return nil
	}
	return &fault.Fault{
		Kind: fault.Forbidden, Code: "model_not_allowed", Param: "model", Message: fmt.Sprintf("This API key may not use the model `%s`", model),
	}
}

// shownKey is a client key as operators see it.
type shownKey struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Models    []string          `json:"allowed_models"` // empty = all
	Limits    clientkey.Limits  `json:"limits"`
	Priority  contract.Priority `json:"priority,omitempty"` // missing = what each request asks for
	Budget    *shownBudget      `json:"budget"`
	ExpiresAt *time.Time        `json:"expires_at"`
	CreatedAt time.Time         `json:"created_at"`
	Revoked   bool              `json:"revoked"`
	LastUsed  *time.Time        `json:"last_used"` // null = not for weeks, or not known
}

type shownBudget struct {
	clientkey.Budget

	Used float64 `json:"used"` // in this period
}

func show(k *clientkey.Key) shownKey {
	s := shownKey{ID: k.ID, Name: k.Name, Models: append([]string{}, k.Models...), Limits: k.Limits, Priority: k.Priority, CreatedAt: k.CreatedAt, Revoked: k.Revoked()}
	if k.Budget != nil {
		s.Budget = &shownBudget{Budget: *k.Budget}
	}
	if !k.ExpiresAt.IsZero() {
		s.ExpiresAt = &k.ExpiresAt
	}
	return s
}

// listClientKeys shows all client keys, the newest first, revoked ones too.
func listClientKeys(x *exchange) error {
	x.leaveBody()
	all := x.api.ClientKeys.All()
	return showJSON(x, x.api.showKeys(all...))
}

// showKeys shows keys with what they have used.
func (a *API) showKeys(keys ...*clientkey.Key) []shownKey {
	shown := make([]shownKey, len(keys))
	used, last := a.Gate.Used(a.Queries(), keys)
	for i, k := range keys {
		shown[i] = show(k)
		if shown[i].Budget != nil {
			shown[i].Budget.Used = used[i]
		}
		if !last[i].IsZero() {
			shown[i].LastUsed = &last[i]
		}
	}
	return shown
}

// madeKey is a client key with its secret, which is shown this one time.
type madeKey struct {
	shownKey

	Key string `json:"key"`
}

func makeClientKey(x *exchange) error {
	k := clientkey.Key{}
	if err := x.readKey(&k); err != nil {
		return err
	}
	made, secret, err := x.api.ClientKeys.Make(x.api.Queries(), k)
	if err != nil {
		return err
	}
	x.noteKey(made)
	return showJSON(x, madeKey{show(made), secret})
}

// changeClientKey changes what the body names; null takes a limit away.
func changeClientKey(x *exchange) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	return x.showChanged(x.api.ClientKeys.Change(x.api.Queries(), x.id, func(k *clientkey.Key) error { return readKey(body, k) }))
}

func revokeClientKey(x *exchange) error {
	x.leaveBody()
	return x.showChanged(x.api.ClientKeys.Revoke(x.api.Queries(), x.id))
}

// showChanged answers with a key, if it was changed.
func (x *exchange) showChanged(k *clientkey.Key, err error) error {
	if err != nil {
		return err
	}
	x.noteKey(k)
	return showJSON(x, x.api.showKeys(k)[0])
}

func rotateClientKey(x *exchange) error {
	x.leaveBody()
	k, secret, err := x.api.ClientKeys.Rotate(x.api.Queries(), x.id)
	if err != nil {
		return err
	}
	x.noteKey(k)
	return showJSON(x, madeKey{x.api.showKeys(k)[0], secret})
}

// noteKey has the audit say which key it was.
func (x *exchange) noteKey(k *clientkey.Key) {
	x.note("client_key", k.ID)
	x.note("name", k.Name)
}

func (x *exchange) readKey(k *clientkey.Key) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	return readKey(body, k)
}

// readKey takes over what a body says of a key. What it does not name stays; null is as if there were none. An unknown member is refused: it may have been
// meant as a limit.
func readKey(body []byte, k *clientkey.Key) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return invalid("", openai.CodeInvalidType, "The request body must be a JSON object")
	}
	for name, text := range members {
		target, kind := keyMember(name, k)
		if target == nil {
			return invalid(shown(name), openai.CodeInvalidValue, "'"+shown(name)+"' is no member of a client key")
		}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(target); err != nil {
			return invalid(name, openai.CodeInvalidType, "'"+name+"' must be "+kind)
		}
	}
	for i := range k.Models {
		k.Models[i] = strings.TrimSpace(k.Models[i])
	}
	return nil
}

// keyMember gives where a member goes, empty, and what it must be.
func keyMember(name string, k *clientkey.Key) (target any, kind string) {
	switch name {
	case "name":
		k.Name = ""
		return &k.Name, "a string"
	case "allowed_models":
		k.Models = nil
		return &k.Models, "an array of strings"
	case "limits":
		return (*givenLimits)(&k.Limits), "an object with 'rpm' and 'tpm', which are whole numbers above 0; what is missing is no limit"
	case "priority":
		k.Priority = ""
		return &k.Priority, "high, normal or low"
	case "budget":
		k.Budget = nil
		return &k.Budget, "an object with 'amount', 'unit' (tokens or money) and 'period' (day or month)"
	case "expires_at":
		k.ExpiresAt = time.Time{}
		return &k.ExpiresAt, "a time such as 2027-01-31T00:00:00Z"
	}
	return nil, ""
}

// givenLimits are limits as operators give them. Nought, which would be no limit, is refused: whoever writes it means the opposite.
type givenLimits clientkey.Limits

// UnmarshalJSON takes over all limits, null and absent ones as none.
func (l *givenLimits) UnmarshalJSON(text []byte) error {
	var given struct {
		Requests *int64 `json:"rpm"`
		Tokens   *int64 `json:"tpm"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&given); err != nil {
		return err
	}
	*l = givenLimits{}
	for _, g := range []struct{ limit, n *int64 }{{&l.Requests, given.Requests}, {&l.Tokens, given.Tokens}} {
		if g.n == nil {
			continue
		}
		if *g.limit = *g.n; *g.n == 0 {
			return errNoLimit
		}
	}
	return nil
}

var errNoLimit = errors.New("a limit of 0")
