package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// slotTime is the step in which the usage of clients is summed. Time zones differ from each other by multiples of it.
const slotTime = 15 * time.Minute

// clientsKept is for how long: more than the longest budget runs.
const clientsKept = 40 * 24 * time.Hour

func slotOf(at time.Time) int64 { return at.Unix() / int64(slotTime/time.Second) }

// clientKey is the key of a sum of a client.
type clientKey struct {
	principal string
	slot      int64
}

type clientSum struct {
	tokens, cost int64
	last         Time
}

// clientSums are what a transaction adds to the usage of clients with named keys.
type clientSums map[clientKey]*clientSum

// add adds to the sum of a client, unless it has no named key.
func (c clientSums) add(principal string, at Time, tokens, cost int64) {
	if !strings.HasPrefix(principal, contract.NamedPrincipal) {
		return
	}
	key := clientKey{principal, slotOf(at.Time)}
	sum := c[key]
	if sum == nil {
		sum = &clientSum{last: at}
		c[key] = sum
	}
	sum.tokens += tokens
	sum.cost += cost
	if at.After(sum.last.Time) {
		sum.last = at
	}
}

const (
	insertClients = `INSERT INTO client_usage (principal, slot, tokens, cost_nanos, last_used) VALUES `
	clientColumns = 5
	clientsAdd    = ` ON CONFLICT (principal, slot) DO UPDATE SET tokens = client_usage.tokens + excluded.tokens,
		cost_nanos = client_usage.cost_nanos + excluded.cost_nanos,
		last_used = CASE WHEN excluded.last_used > client_usage.last_used THEN excluded.last_used ELSE client_usage.last_used END`
	pruneClients = `DELETE FROM client_usage WHERE (principal, slot) IN (SELECT principal, slot FROM client_usage ORDER BY slot, principal LIMIT ?)
		AND slot < ?`
)

// addClients adds to the usage of clients, in the order of the keys, as addDaily does.
func addClients(ctx context.Context, tx *sqlx.Tx, sums clientSums) error {
	keys := make([]clientKey, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b clientKey) int {
		return cmp.Or(strings.Compare(a.principal, b.principal), cmp.Compare(a.slot, b.slot))
	})
	for chunk := range slices.Chunk(keys, rowsPerStatement) {
		args := make([]any, 0, len(chunk)*clientColumns)
		for _, k := range chunk {
			s := sums[k]
			args = append(args, k.principal, k.slot, s.tokens, s.cost, s.last)
		}
		if _, err := tx.ExecContext(ctx, tx.Rebind(insertClients+placeholders(len(chunk), clientColumns)+clientsAdd), args...); err != nil {
			return fmt.Errorf("adding to the usage of clients: %w", err)
		}
	}
	return nil
}

// ClientUsage gives what each of the clients has used since a time.
func (s *Store) ClientUsage(ctx context.Context, clients []query.ClientSince) ([]query.ClientUsage, error) {
	bySince := map[int64][]int{} // there are few begins of periods
	for i, c := range clients {
		slot := slotOf(c.Since)
		bySince[slot] = append(bySince[slot], i)
	}
	usage := make([]query.ClientUsage, len(clients))
	for slot, all := range bySince {
		for some := range slices.Chunk(all, rowsPerStatement) {
			if err := s.clientUsage(ctx, clients, slot, some, usage); err != nil {
				return nil, err
			}
		}
	}
	return usage, nil
}

// clientUsage fills in what those of the clients that are at some places have used.
func (s *Store) clientUsage(ctx context.Context, clients []query.ClientSince, slot int64, some []int, usage []query.ClientUsage) error {
	names := make([]string, len(some))
	for i, at := range some {
		names[i] = clients[at].Principal
	}
	statement, args, err := sqlx.In(`SELECT principal, CAST(SUM(CASE WHEN slot >= ? THEN tokens ELSE 0 END) AS BIGINT) AS tokens,
		CAST(SUM(CASE WHEN slot >= ? THEN cost_nanos ELSE 0 END) AS BIGINT) AS cost_nanos, MAX(last_used) AS last_used
		FROM client_usage WHERE principal IN (?) GROUP BY principal`, slot, slot, names)
	if err != nil {
		return fmt.Errorf("asking for the usage of clients: %w", err)
	}
	var rows []struct {
		query.ClientUsage

		Principal string `db:"principal"`
	}
	if err := s.read.SelectContext(ctx, &rows, s.read.Rebind(statement), args...); err != nil {
		return fmt.Errorf("reading the usage of clients: %w", err)
	}
	for _, r := range rows {
		for _, at := range some {
			if clients[at].Principal == r.Principal {
				usage[at] = r.ClientUsage
			}
		}
	}
	return nil
}
