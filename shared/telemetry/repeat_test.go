package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/telemetry"
	"hydrallm/shared/testkit/output"
)

// what happens to a thousand requests is a few lines, with their number; what differs is not lost.
func TestRepeatedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out output.Buffer
		log, closeLog, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info"}, &out)
		require.NoError(t, err)
		log = log.With(slog.String("service", "x"))
		lines := func() []string { return strings.Split(strings.TrimSuffix(out.Take(), "\n"), "\n") }
		shed := func(n int) {
			for i := range n {
				ctx := telemetry.WithRequest(t.Context(), fmt.Sprint("r", i))
				log.WarnContext(ctx, "request refused", slog.String("code", "queue_timeout"), slog.String("rid", strconv.Itoa(i)))
			}
		}
		wait := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // time of the bubble
			synctest.Wait()
		}
		shed(1000)
		require.Len(t, lines(), 3)
		wait(10 * time.Second)
		got := lines()
		require.Len(t, got, 1)
		require.Regexp(t, `WRN request refused service=x code=queue_timeout more=997$`, got[0], "without the id of one of them")
		shed(5)
		wait(10 * time.Second)
		require.Regexp(t, `more=5$`, lines()[0], "as long as they come there is one line a window")
		wait(10 * time.Second)
		shed(1)
		require.Regexp(t, `rid=\S+$`, lines()[0], "it begins anew")

		for i := range 10 {
			log.WarnContext(t.Context(), "models not listed", slog.Int("provider", i))
			log.With(slog.Int("n", i)).InfoContext(t.Context(), "same")
			log.WithGroup(fmt.Sprint("g", i)).InfoContext(t.Context(), "same", slog.Int("a", 1))
		}
		require.Len(t, lines(), 30, "lines that differ are written")
		for range 10 {
			telemetry.Event(t.Context(), log, slog.LevelInfo, "accepted", "model", "m")
		}
		require.Len(t, lines(), 10, "R-370: one line per event")
		for range 10 {
			telemetry.Event(t.Context(), log, slog.LevelWarn, "rejected", "model", "m")
		}
		require.Len(t, lines(), 3)
		require.NoError(t, closeLog())
		require.Regexp(t, `rejected service=x model=m more=7$`, lines()[0], "nothing is lost at the end")
		log.WarnContext(t.Context(), "late")
		require.Len(t, lines(), 1)
		wait(time.Hour)
		require.Empty(t, out.Take())
	})
}

// The lines that are kept apart are bounded; those beyond are written.
func TestManyKindsOfLines(t *testing.T) {
	t.Parallel()
	log, out := logger(t, telemetry.LogConfig{Level: "info", Format: "json"})
	for range 4 {
		for i := range 2000 {
			log.InfoContext(t.Context(), "x", slog.Int("i", i))
		}
	}
	require.Equal(t, 2000*3+1000, bytes.Count(out.Bytes(), []byte("\n")))
}
