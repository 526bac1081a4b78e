package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"hydrallm/shared/telemetry"
)

// lumberjack keeps a goroutine per file for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"))
}

func logger(t *testing.T, cfg telemetry.LogConfig) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log, closeLog, err := telemetry.NewLogger(cfg, &out)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeLog()) })
	return log, &out
}

// every line of a request carries its id, also through derived loggers.
func TestLinesCarryTheRequestID(t *testing.T) {
	t.Parallel()
	log, out := logger(t, telemetry.LogConfig{Level: "info", Format: "json"})
	ctx := telemetry.WithRequest(t.Context(), "r1")
	log.With(slog.String("a", "b")).InfoContext(ctx, "with attributes")
	log.InfoContext(t.Context(), "without a request")
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	require.Len(t, lines, 2)
	var first, second map[string]any
	require.NoError(t, json.Unmarshal(lines[0], &first))
	require.NoError(t, json.Unmarshal(lines[1], &second))
	require.Equal(t, "r1", first["rid"])
	require.Equal(t, "b", first["a"])
	require.NotContains(t, second, "rid")
	out.Reset()
	log.WithGroup("g").InfoContext(ctx, "in a group")
	require.Contains(t, out.String(), `"rid":"r1"`)
}

func TestLevels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		level string
		debug bool
		info  bool
	}{
		"debug shows all": {"debug", true, true},
		"info":            {"info", false, true},
		"any case":        {"INFO", false, true},
		"error":           {"error", false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, out := logger(t, telemetry.LogConfig{Level: tt.level})
			log.DebugContext(t.Context(), "detail")
			log.InfoContext(t.Context(), "summary")
			require.Equal(t, tt.debug, bytes.Contains(out.Bytes(), []byte("detail")))
			require.Equal(t, tt.info, bytes.Contains(out.Bytes(), []byte("summary")))
		})
	}
}

// Nothing of a value is lost because of one character.
func TestTextIsWhole(t *testing.T) {
	t.Parallel()
	log, out := logger(t, telemetry.LogConfig{Level: "info", Format: "text"})
	log.InfoContext(t.Context(), "x", slog.String("a", "1\xff2"), slog.Any("b", errors.New("3\uFFFD4")), slog.Int("c", 5), slog.Any("d", nil))
	require.Contains(t, out.String(), " INF x a=1?2 b=3?4 c=5 d=<nil>\n")
}

// the same lines go to standard output and to a file, whose directory is made.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs", "gateway.log")
	var out bytes.Buffer
	log, closeLog, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", File: path}, &out)
	require.NoError(t, err)
	log.InfoContext(t.Context(), "héllo 한국어")
	require.NoError(t, closeLog())
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, out.String(), string(written))
	require.Contains(t, out.String(), "héllo 한국어")
}

func TestBadLogConfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err := telemetry.NewLogger(telemetry.LogConfig{Level: "loud"}, os.Stdout)
	require.ErrorContains(t, err, "loud")
	_, _, err = telemetry.NewLogger(telemetry.LogConfig{Level: "info", File: filepath.Join(file, "x.log")}, os.Stdout)
	require.ErrorContains(t, err, file)
}

type kind struct{ name string }

func (k kind) String() string { return "kind " + k.name }

// one line per event, with the prefix. People read it as text, programs as members.
func TestEvent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		event      string
		pairs      []any
		text, json string
	}{
		"words only":         {"server: closed", nil, "server: closed", `{}`},
		"pairs in order":     {"server: bind", []any{"host", "::1", "port", 8100}, "server: bind host=::1 port=8100", `{"host": "::1", "port": 8100}`},
		"a slot":             {"accepted", []any{"active[a-1]", "1/inf"}, "accepted active[a-1]=1/inf", `{"active[a-1]": "1/inf"}`},
		"space is quoted":    {"config:", []any{"message", "two words"}, `config: message="two words"`, `{"message": "two words"}`},
		"quote is quoted":    {"x", []any{"v", `a"b`}, `x v="a\"b"`, `{"v": "a\"b"}`},
		"newline is safe":    {"x", []any{"v", "a\nb"}, `x v="a\nb"`, `{"v": "a\nb"}`},
		"empty is visible":   {"x", []any{"v", ""}, `x v=""`, `{"v": ""}`},
		"half a pair":        {"x", []any{"v"}, "x", `{}`},
		"not readable":       {"x", []any{"v", "a\uFFFDb c"}, `x v="a?b c"`, `{"v": "a\uFFFDb c"}`},
		"for a terminal":     {"x", []any{"v", "a\x1b[2Jb"}, `x v=a?[2Jb`, `{"v": "a\u001b[2Jb"}`},
		"durations":          {"end", []any{"duration", 1500 * time.Millisecond}, "end duration=1.5s", `{"duration": 1.5}`},
		"what says its name": {"x", []any{"v", kind{"a"}, "e", errors.New("no")}, `x v="kind a" e=no`, `{"v": "kind a", "e": "no"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, out := logger(t, telemetry.LogConfig{Level: "info", Format: "text"})
			telemetry.Event(t.Context(), log, slog.LevelInfo, tt.event, tt.pairs...)
			telemetry.Event(t.Context(), log, slog.LevelDebug, "not shown")
			_, line, _ := strings.Cut(out.String(), " INF ")
			require.Equal(t, "[llm-proxy] "+tt.text+"\n", line)

			log, out = logger(t, telemetry.LogConfig{Level: "info", Format: "json"})
			telemetry.Event(telemetry.WithRequest(t.Context(), "r1"), log, slog.LevelInfo, tt.event, tt.pairs...)
			var members map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &members))
			require.Equal(t, "[llm-proxy] "+tt.event, members["msg"])
			require.Equal(t, "r1", members["rid"])
			for _, common := range []string{"msg", "rid", "time", "level"} {
				delete(members, common)
			}
			rest, err := json.Marshal(members)
			require.NoError(t, err)
			require.JSONEq(t, tt.json, string(rest))
		})
	}
}
