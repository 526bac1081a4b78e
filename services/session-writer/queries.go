package sessionwriter

import (
	"context"
	"errors"
	"time"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// handlers answers questions. While the database can't be had they say so.
func handlers(cfg Config, s *sessions, r *stored, m *mirror, d *database, b *backups) query.Handlers {
	h, db := query.Handlers{}, s.store
	query.GetStats.Handle(h, func(ctx context.Context, _ query.None) (query.Stats, error) { return db.Stats(ctx) })
	query.GetLogs.Handle(h, func(ctx context.Context, q query.Logs) ([]query.LogEntry, error) { return db.Logs(ctx, q) })
	query.GetCalls.Handle(h, func(ctx context.Context, q query.Calls) ([]query.Call, error) { return db.Calls(ctx, q.Limit) })
	query.ListRequests.Handle(h, func(ctx context.Context, q query.Requests) (query.RequestPage, error) { return db.Requests(ctx, q) })
	query.GetTimeline.Handle(h, func(ctx context.Context, q query.Timeline) (query.Sums, error) { return db.Timeline(ctx, q) })
	query.GetClientUsage.Handle(h, db.ClientUsage)
	query.ClearLogs.Handle(h, func(ctx context.Context, _ query.None) (query.Done, error) {
		return query.Done{Status: query.Success}, db.ClearLogs(ctx)
	})
	query.ListSessions.Handle(h, func(ctx context.Context, q query.Sessions) ([]query.Session, error) { return db.Sessions(ctx, q.Limit) })
	query.NewSession.Handle(h, func(ctx context.Context, _ query.None) (query.SessionMade, error) {
		id, err := db.NewSession(ctx)
		return query.SessionMade{Status: query.Success, ID: id}, err
	})
	query.CleanSessions.Handle(h, func(ctx context.Context, q query.Cleanup) (query.Cleaned, error) {
		if q.Days == 0 {
			q.Days, _ = cfg.kept()
		}
		n, err := db.CleanSessions(ctx, time.Now().Add(-time.Duration(min(max(q.Days, 1), maxDays))*day), 0)
		return query.Cleaned{Status: query.Success, Deleted: n}, err
	})
	query.PutSettings.Handle(h, m.put)
	query.GetBackup.Handle(h, b.get)
	s.handle(h)
	r.handle(h)
	for name, handle := range h {
		h[name] = func(ctx context.Context, question []byte) ([]byte, error) {
			answer, err := handle(ctx, question)
			return answer, d.shown(err)
		}
	}
	return h
}

// maxDays is the longest that a cleanup may leave.
const maxDays = 365

// handle answers questions about one session, with every turn that has ended.
func (s *sessions) handle(h query.Handlers) {
	query.GetMessages.Handle(h, func(ctx context.Context, q query.Messages) (page query.MessagePage, err error) {
		if err := s.catchUp(ctx, q.ID); err != nil {
			return page, err
		}
		page, err = s.store.Messages(ctx, q.ID, q.After)
		return page, shown(err)
	})
	query.GetSession.Handle(h, func(ctx context.Context, q query.SessionID) (one query.Session, err error) {
		if err := s.catchUp(ctx, q.ID); err != nil {
			return one, err
		}
		one, err = s.store.Session(ctx, q.ID)
		return one, shown(err)
	})
	query.DeleteSession.Handle(h, func(ctx context.Context, q query.SessionID) (query.Done, error) {
		return query.Done{Status: query.Success}, shown(s.forget(ctx, q.ID))
	})
	query.ForkSession.Handle(h, func(ctx context.Context, q query.Fork) (query.SessionMade, error) {
		if err := s.catchUp(ctx, q.ID); err != nil {
			return query.SessionMade{}, err
		}
		id, err := s.store.Fork(ctx, store.Fork{Source: q.ID, Point: q.Message, Principal: contract.PrincipalAdmin})
		return query.SessionMade{Status: query.Success, ID: id}, shown(err)
	})
}

// shown turns the absence of a session into what callers know it by.
func shown(err error) error {
	if errors.Is(err, store.ErrNoSession) {
		return errNotFound
	}
	return err
}
