package sessionwriter

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/natstest"
)

// R-307..R-310, section 19, scenario 20: over forty long turns the prompt stays small, and holds a summary, the newest messages, and the facts of the beginning.
func TestLongSessionsAreCompacted(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s, err := New(Config{ID: "w1", Database: sqliteAddress(t), CompactThreshold: 1000, RecentWindow: 4, MaxWait: time.Millisecond}, bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	require.NoError(t, s.Start(t.Context()))
	p := newPipe(t, srv)
	idle := strings.Repeat("there is much to be said about all of this and nothing of it is new. ", 8)
	compacted := 0
	for n := range 40 {
		text := idle
		if n == 1 {
			text += "The access code of gate 7 is KX-4711."
		}
		o := p.ask(strconv.Itoa(n), "s", question(text))
		list := said(t, o.body)
		require.Equal(t, text, list[len(list)-1])
		if strings.HasPrefix(list[0], "[CONVERSATION SUMMARY]") {
			compacted++
			require.Contains(t, list[0], "KX-4711")
			require.GreaterOrEqual(t, len(list), 6)
			require.Equal(t, fmt.Sprintf("answer %d. ", n-1)+idle, list[len(list)-2])
		}
		p.answer(o, fmt.Sprintf("answer %d. ", n)+idle)
		require.Eventually(t, func() bool {
			page, err := query.GetMessages.Ask(t.Context(), p.bus, query.Messages{ID: "s"})
			return err == nil && len(page.Messages) <= 9
		}, testWait, 5*time.Millisecond)
	}
	require.Greater(t, compacted, 30)
}
