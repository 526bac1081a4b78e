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
			c.reportTo(c.signs(list))
			for _, w := range list {
				if !w.settled.Load() {
					_ = w.msg.settle(jetstream.Msg.InProgress)
				}
			}
		}
	}
}

// sign is what is said of a request, and what the answer is for.
type sign struct {
	contract.Sign

	reply *Reply // nil when nothing was sent
	progress
}

// signs are those of the requests that are worked on, by ingress, and of those that were and whose answers may have been lost.
func (c *Consumer) signs(list []*Work) map[string][]sign {
	all, replies := map[string][]sign{}, c.bus.unheard.report()
	for _, w := range list {
		if w.granted.Load() && !w.settled.Load() && !w.Request.Background {
			s := sign{Sign: contract.Sign{Position: w.position(), RequestID: w.Request.ID}}
			if p, sends := replies[w.reply.Load()]; sends {
				s.reply, s.Sent, s.progress.sent = w.reply.Load(), p.sent, p.sent
				delete(replies, s.reply)
			}
			all[w.Request.Ingress] = append(all[w.Request.Ingress], s)
		}
	}
	for r, p := range replies {
		if p.ended {
			all[r.ingress] = append(all[r.ingress], sign{Sign: contract.Sign{Position: r.at, RequestID: r.rid, Sent: p.sent}, reply: r, progress: p})
		}
	}
	return all
}

// reportTo sends each ingress its signs, unless it has not answered the last ones yet. It does not wait for the answers.
func (c *Consumer) reportTo(all map[string][]sign) {
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
		c.ticking.Go(func() { c.heard(ingress, l, signs, c.report(ingress, signs)) })
	}
}

// report sends signs and does what the ingress says to them.
func (c *Consumer) report(ingress string, signs []sign) error {
	lost := 0
	for part := range slices.Chunk(signs, maxSigns) {
		report := contract.AppendSigns(nil, c.bus.id)
		for _, s := range part {
			report = s.AppendTo(report)
		}
		answer, err := c.bus.askOnce(c.ctx, subject.Alive(ingress), report)
		if err != nil {
			return err
		}
		said := map[string]contract.Heard{}
		for _, h := range contract.ParseHeard(answer) {
			said[h.RequestID] = h
		}
		for _, s := range part {
			h := said[s.RequestID]
			if h.Lacks {
				lost++
			}
			if err := c.take(s, h); err != nil {
				return err
			}
		}
	}
	if lost > 0 {
		c.bus.log.Info("answers were lost on their way and are sent again", slog.String("ingress", ingress), slog.Int("requests", lost))
	}
	return nil
}

// take does what an ingress says to a sign.
func (c *Consumer) take(s sign, h contract.Heard) error {
	if h.Unwanted && !s.ended {
		c.bus.control.cancel(s.RequestID)
	}
	if s.reply == nil {
		return nil
	}
	return s.reply.heard(s.progress, h)
}

// heard takes in the result of a report. When the ingress is gone nobody awaits its requests (delivery rule 4).
func (c *Consumer) heard(ingress string, l *listener, signs []sign, err error) {
	if !c.absent(l, err) {
		return
	}
	c.bus.log.Warn("ingress is gone, its requests are cancelled", slog.String("ingress", ingress), slog.Int("requests", len(signs)))
	for _, s := range signs {
		_ = c.take(s, contract.Heard{Unwanted: true}) // nothing is sent
	}
}

// absent takes in how a report ended, and says whether the ingress is gone.
func (c *Consumer) absent(l *listener, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.asked = false
	if !errors.Is(err, nats.ErrNoResponders) {
		l.absent = 0
		return false
	}
	l.absent++
	return l.absent >= absentAfter
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
