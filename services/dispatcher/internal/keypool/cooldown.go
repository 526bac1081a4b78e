package keypool

import (
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// Cooldowns are how long a key cools down by default, and at most.
type Cooldowns struct{ Forbidden, Quota, Other, Max time.Duration }

// of is how long a verdict lets a key cool down.
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

// Cooldown is a cooldown that began or ended, to be told to other dispatchers.
type Cooldown struct {
	Index int
	Model string         // "" = for every model
	Class classify.Class // why; "" when not known
	Until time.Time      // zero for one that ended
}

// cooldown is a time in which a key is not used. The zero cooldown is none.
type cooldown struct {
	until time.Time
	since time.Time // when it was imposed
	class classify.Class
}

func (r cooldown) none() bool { return r.since.IsZero() }

// left is the rest of the cooldown, 0 when it is over.
func (r cooldown) left(now time.Time) time.Duration { return max(0, r.until.Sub(now)) }

func (k *keyState) cooldownEnd(model string) time.Time { return k.cooldownFor(model).until }

// cooldownFor is what keeps the key from this model for the longest.
func (k *keyState) cooldownFor(model string) cooldown {
	if m := k.byModel[model]; m.until.After(k.cooldown.until) {
		return m
	}
	return k.cooldown
}

// failed says whether the key has failed for every model, and no success has come since. It may be used again when its cooldown is
// over.
func (k *keyState) failed() bool { return !k.cooldown.none() }

// impose lets the key cool down unless it cools down for longer already.
func (k *keyState) impose(r Cooldown, now time.Time) bool {
	if !r.Until.After(now) {
		return false
	}
	imposed := cooldown{until: r.Until, since: now, class: r.Class}
	if r.Model == "" {
		if !r.Until.After(k.cooldown.until) {
			return false
		}
		k.cooldown = imposed
		return true
	}
	if !r.Until.After(k.byModel[r.Model].until) {
		return false
	}
	if k.byModel == nil {
		k.byModel = map[string]cooldown{}
	}
	k.forget(now)
	k.byModel[r.Model] = imposed
	return true
}

// forget drops cooldowns that are over and makes room for another one: names of models come from clients, so there may be any number. The cooldown
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

// recover takes in that a call which began then went well, and gives the models whose cooldowns that ended, "" for the one for every model.
func (k *keyState) recover(model string, started time.Time) (ended []string) {
	if !k.cooldown.none() && k.cooldown.since.Before(started) {
		k.cooldown = cooldown{}
		ended = append(ended, "")
	}
	if r, ok := k.byModel[model]; ok && r.since.Before(started) {
		delete(k.byModel, model)
		ended = append(ended, model)
	}
	return ended
}
