package bus

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// maxSigns bounds the signs in one message.
const maxSigns = 500

// listener is an ingress to which a consumer reports.
type listener struct {
	asked  bool // a report is under way
	absent int  // reports in a row to which nobody listened
}

// reportProgress renews the lease of every message under way each third of AckWait and tells the ingresses of them (delivery rule 2).
func (c *Consumer) reportProgress() {
	ticker := time.NewTicker(topology.AckWait / 3)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case now := <-ticker.C:
			list := c.older(now.Add(-topology.AckWait / 6))
			c.reportTo(signs(list))
			for _, w := range list {
				if !w.settled.Load() {
					_ = w.msg.settle(jetstream.Msg.InProgress)
				}
			}
		}
	}
}

// signs are those of the requests that are worked on, by ingress.
func signs(list []*Work) map[string][]contract.Sign {
	all := map[string][]contract.Sign{}
	for _, w := range list {
		if w.granted.Load() && !w.settled.Load() && !w.Request.Background {
			all[w.Request.Ingress] = append(all[w.Request.Ingress], contract.Sign{Position: w.position(), RequestID: w.Request.ID})
		}
	}
	return all
}

// reportTo sends each ingress its signs, unless it has not answered the last ones yet. It does not wait for the answers.
func (c *Consumer) reportTo(all map[string][]contract.Sign) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ingress, l := range c.listeners {
		if all[ingress] == nil && !l.asked {
			delete(c.listeners, ingress)
		}
	}
	for ingress, signs := range all {
		l := c.listeners[ingress]
		if l == nil {
			l = &listener{}
			c.listeners[ingress] = l
		}
		if l.asked {
			continue
		}
		l.asked = true
		c.ticking.Go(func() {
			unwanted, err := c.report(ingress, signs)
			for _, rid := range append(unwanted, c.heard(ingress, l, signs, err)...) {
				c.bus.control.cancel(rid)
			}
		})
	}
}

// report sends signs and gives the ids of requests that nobody awaits.
func (c *Consumer) report(ingress string, signs []contract.Sign) (unwanted []string, err error) {
	for part := range slices.Chunk(signs, maxSigns) {
		answer, err := c.bus.askOnce(c.ctx, subject.Alive(ingress), contract.AppendSigns(nil, c.bus.id, part...))
		if err != nil {
			return unwanted, err
		}
		unwanted = append(unwanted, contract.IDs(answer)...)
	}
	return unwanted, nil
}

// heard takes in the result of a report. It gives the ids of all requests when the ingress is gone: nobody awaits them (delivery rule 4).
func (c *Consumer) heard(ingress string, l *listener, signs []contract.Sign, err error) (orphans []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.asked = false
	if !errors.Is(err, nats.ErrNoResponders) {
		l.absent = 0
		return nil
	}
	if l.absent++; l.absent < absentAfter {
		return nil
	}
	c.bus.log.Warn("ingress is gone, its requests are cancelled", slog.String("ingress", ingress), slog.Int("requests", len(signs)))
	for _, s := range signs {
		orphans = append(orphans, s.RequestID)
	}
	return orphans
}

// queued tells the ingress that a request waits for the stage at the front of its slip.
func (b *Bus) queued(req *contract.Request) {
	b.tell(subject.Alive(req.Ingress), contract.Sign{Position: contract.Position{Stage: req.Slip.Here()}, RequestID: req.ID})
}

// handedBack tells the ingress that the message of w comes back although nothing is wrong with it or with its worker. It goes out before that
// of the server, on the same connection, so that the ingress knows when the next worker asks.
func (b *Bus) handedBack(w *Work) {
	if w.Request.Background {
		w.release()
		return
	}
	b.tell(subject.HandBack(w.Request.Ingress), contract.Sign{Position: w.position(), RequestID: w.Request.ID})
}

func (b *Bus) tell(subj string, s contract.Sign) {
	if err := b.nc.Publish(subj, contract.AppendSigns(nil, b.id, s)); err != nil {
		b.log.Debug("telling where a request waits", slog.String("rid", s.RequestID), slog.Any("error", err))
	}
}
