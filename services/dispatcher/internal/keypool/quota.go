package keypool

import (
	"maps"
	"slices"
	"time"

	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// maxModels bounds the models of which a key's usage is known, and those that it cools down for; the one that was not used for longest makes room.
const maxModels = 64

// Limits are what a provider allows a key, 0 where it is not known.
type Limits struct{ PerMinute, PerDay int }

// Quota reads the usage of all keys. limits gives what is known of the limits of a tier for a model, where model "" means all
// models together; nil knows nothing.
func (p *Pool) Quota(limits func(tier, model string) Limits) []query.KeyQuota {
	if limits == nil {
		limits = func(string, string) Limits { return Limits{} }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	all := make([]query.KeyQuota, 0, len(p.state))
	for i := range p.state {
		k := &p.state[i]
		if k.removed {
			continue
		}
		names := map[string]bool{}
		for model := range k.usage.models {
			names[model] = true
		}
		for model, r := range k.byModel {
			if r.left(now) > 0 {
				names[model] = true
			}
		}
		q := query.KeyQuota{Index: i, ID: config.Mask(k.Value), Tier: k.Tier, QuotaUse: k.usage.all.read(limits(k.Tier, ""), k.cooldown.until, now), Models: []query.ModelQuota{}}
		for _, model := range slices.Sorted(maps.Keys(names)) {
			var c counter
			if known := k.usage.models[model]; known != nil {
				c = *known
			}
			q.Models = append(q.Models, query.ModelQuota{Model: model, QuotaUse: c.read(limits(k.Tier, model), k.cooldownEnd(model), now)})
		}
		all = append(all, q)
	}
	return all
}

// keyUsage counts the calls with one key.
type keyUsage struct {
	all    counter
	models map[string]*counter
}

func (u *keyUsage) called(model string, now time.Time) {
	u.all.add(now)
	c := u.models[model]
	if c == nil {
		c = u.create(model)
	}
	c.add(now)
}

func (u *keyUsage) create(model string) *counter {
	if u.models == nil {
		u.models = map[string]*counter{}
	}
	if len(u.models) >= maxModels {
		var oldest string
		for name, c := range u.models {
			if o := u.models[oldest]; o == nil || c.last.Before(o.last) {
				oldest = name
			}
		}
		delete(u.models, oldest)
	}
	c := &counter{}
	u.models[model] = c
	return c
}

func (u *keyUsage) limited(model string, now time.Time) {
	u.all.last429 = now
	if c := u.models[model]; c != nil {
		c.last429 = now
	}
}

// counter counts calls in the current minute and day.
type counter struct {
	minute, day     time.Time // when they began
	inMinute, inDay int
	last            time.Time // call
	last429         time.Time
}

const day = 24 * time.Hour

func (c *counter) add(now time.Time) {
	c.inMinute, c.inDay = c.at(now)
	c.inMinute++
	c.inDay++
	c.minute, c.day, c.last = begin(now, time.Minute), begin(now, day), now
}

// at gives the calls of the minute and the day in which now is.
func (c *counter) at(now time.Time) (inMinute, inDay int) {
	if c.minute.Equal(begin(now, time.Minute)) {
		inMinute = c.inMinute
	}
	if c.day.Equal(begin(now, day)) {
		inDay = c.inDay
	}
	return inMinute, inDay
}

func (c *counter) read(l Limits, rests, now time.Time) query.QuotaUse {
	inMinute, inDay := c.at(now)
	return query.QuotaUse{
		Minute:   query.Window{Used: inMinute, Limit: l.PerMinute, Reset: begin(now, time.Minute).Add(time.Minute)},
		Day:      query.Window{Used: inDay, Limit: l.PerDay, Reset: begin(now, day).Add(day)},
		Cooldown: seconds(max(0, rests.Sub(now))), Last429: c.last429,
	}
}

// begin gives the beginning of a minute or a day of UTC.
func begin(now time.Time, d time.Duration) time.Time { return now.UTC().Truncate(d) }
