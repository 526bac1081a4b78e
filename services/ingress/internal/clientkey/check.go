package clientkey

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// Bounds of what a key may say.
const (
	maxNameRunes = 64
	maxModels    = 200
	maxRate      = 1e12
	maxAmount    = 1e15
)

// check says what is wrong with a key, by the names that operators use. Names, models and times of the key are put into their form.
func (k *Key) check(now time.Time) error {
	k.Name = strings.TrimSpace(k.Name)
	switch {
	case k.Name == "":
		return wrong("name", "is missing")
	case utf8.RuneCountInString(k.Name) > maxNameRunes:
		return wrong("name", "is longer than 64 characters")
	case !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return wrong("name", "holds a character that can't be shown")
	case len(k.Models) > maxModels:
		return wrong("allowed_models", "has more than 200 entries")
	case k.Limits.Requests < 0 || k.Limits.Requests > maxRate:
		return wrong("limits.rpm", "must be a positive number")
	case k.Limits.Tokens < 0 || k.Limits.Tokens > maxRate:
		return wrong("limits.tpm", "must be a positive number")
	case k.Priority != "" && !k.Priority.Known():
		return wrong("priority", "must be high, normal or low")
	case !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now) && !k.Revoked():
		return wrong("expires_at", "is over already")
	}
	for _, m := range k.Models {
		if strings.TrimSpace(m) == "" || len(m) > contract.MaxName {
			return wrong("allowed_models", "has an entry that is no name of a model")
		}
	}
	k.ExpiresAt = k.ExpiresAt.UTC()
	return k.Budget.check()
}

func (b *Budget) check() error {
	switch {
	case b == nil:
		return nil
	case b.Unit != Tokens && b.Unit != Money:
		return wrong("budget.unit", "must be tokens or money")
	case b.Period != Day && b.Period != Month:
		return wrong("budget.period", "must be day or month")
	case !(b.Amount > 0) || b.Amount > maxAmount || math.IsNaN(b.Amount):
		return wrong("budget.amount", "must be a positive number")
	case b.Unit == Tokens && b.Amount != math.Trunc(b.Amount):
		return wrong("budget.amount", "must be a whole number of tokens")
	}
	return nil
}

func wrong(param, why string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: param, Code: openai.CodeInvalidValue, Message: "'" + param + "' " + why}
}
