package keypool

import (
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// Cooldowns are how long a key rests by default, and at most.
type Cooldowns struct{ Forbidden, Quota, Other, Max time.Duration }

// of is how long a verdict lets a key rest.
func (c Cooldowns) of(v classify.Verdict) time.Duration {
	wait := c.Other
	switch v.Cooldown {
	case classify.ForbiddenCooldown:
		wait = c.Forbidden
	case classify.QuotaCooldown:
		wait = c.Quota
	case classify.OtherCooldown, classify.NoCooldown:
	}
	if v.Stated && v.Wait > 0 {
		wait = v.Wait
	}
	return min(wait, c.Max)
}

// Rest is a cooldown that began, to be told to other dispatchers.
type Rest struct {
	Index int
	Model string         // "" = for every model
	Class classify.Class // why; "" when not known
	Until time.Time
}

// rest is a time in which a key is not used. The zero rest is none.
type rest struct {
	until time.Time
	since time.Time // when it was imposed
	class classify.Class
}

func (r rest) none() bool { return r.since.IsZero() }

// left is the rest of the rest, 0 when it is over.
func (r rest) left(now time.Time) time.Duration { return max(0, r.until.Sub(now)) }

func (k *keyState) restsUntil(model string) time.Time {
	until := k.rest.until
	if m := k.byModel[model].until; m.After(until) {
		return m
	}
	return until
}

// failed says whether the key has failed for every model, and no success has come since. It may be used again when its rest is
// over.
func (k *keyState) failed() bool { return !k.rest.none() }

// impose lets the key rest unless it rests for longer already.
func (k *keyState) impose(r Rest, now time.Time) bool {
	if !r.Until.After(now) {
		return false
	}
	imposed := rest{until: r.Until, since: now, class: r.Class}
	if r.Model == "" {
		if !r.Until.After(k.rest.until) {
			return false
		}
		k.rest = imposed
		return true
	}
	if !r.Until.After(k.byModel[r.Model].until) {
		return false
	}
	if k.byModel == nil {
		k.byModel = map[string]rest{}
	}
	k.forget(now)
	k.byModel[r.Model] = imposed
	return true
}

// forget drops rests that are over and makes room for another one: names of models come from clients, so there may be any number. The rest
// that ends first is forgotten then; what it was for is asked once more, at worst.
func (k *keyState) forget(now time.Time) {
	first := ""
	for model, r := range k.byModel {
		if !r.until.After(now) {
			delete(k.byModel, model)
		} else if first == "" || r.until.Before(k.byModel[first].until) {
			first = model
		}
	}
	if len(k.byModel) >= maxModels {
		delete(k.byModel, first)
	}
}

// recover takes in that a call which began then went well.
func (k *keyState) recover(model string, started time.Time) {
	if k.rest.since.Before(started) {
		k.rest = rest{}
	}
	if r, ok := k.byModel[model]; ok && r.since.Before(started) {
		delete(k.byModel, model)
	}
}
