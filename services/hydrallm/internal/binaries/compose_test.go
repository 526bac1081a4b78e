package binaries

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/machine"
)

const repository = "../../../../"

// overrideInDocs is a compose.override.yaml that the documentation shows.
var overrideInDocs = regexp.MustCompile("(?s)```(?:yaml)?\n(# compose\\.override\\.yaml\n.*?)```")

// composeSet asks docker-compose, which needs no engine for that, what it makes of compose.yaml and more files.
func composeSet(t *testing.T, args []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), machine.Program(t, "docker-compose"), slices.Concat([]string{"--env-file", ".env.example", "-f", "compose.yaml"}, args, command)...)
	cmd.Dir = repository
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "COMPOSE_") && !strings.HasPrefix(variable, "HYDRALLM_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return string(out)
}

// the set with all its profiles, and with what the documentation puts over it, is one that docker-compose 1.29 takes, too.
func TestComposeTakesItsFiles(t *testing.T) {
	t.Parallel()
	composeSet(t, nil, "config", "--quiet")
	profiles := []string{"--profile", "demo", "--profile", "observability"}
	services := strings.Fields(composeSet(t, profiles, "config", "--services"))
	require.Subset(t, services, []string{"ingress", "analyzer", "enricher", "dispatcher", "session-writer", "nats", "postgres", "mock", "prometheus", "grafana", "otel-collector"})

	mounts := regexp.MustCompile(`(?m)^ +(?:- (/[^:\n]+):/|source: (/.+)$)`).FindAllStringSubmatch(composeSet(t, profiles, "config"), -1)
	require.NotEmpty(t, mounts)
	for _, m := range mounts { // in the short form of the first docker-compose, or the long one of the second
		require.FileExists(t, m[1]+m[2], "an engine makes a directory of it")
	}

	scraped, err := os.ReadFile(observability + "prometheus.yml")
	require.NoError(t, err)
	names := regexp.MustCompile(`names: \[(.*?)\]`).FindSubmatch(scraped)
	require.NotNil(t, names)
	require.Subset(t, services, strings.Split(string(names[1]), ", "))

	operations, err := os.ReadFile(repository + "docs/operations.md")
	require.NoError(t, err)
	shown := overrideInDocs.FindAllSubmatch(operations, -1)
	require.NotEmpty(t, shown)
	for _, block := range shown {
		dir := t.TempDir()
		profile, file := filepath.Join(dir, "chromium.json"), filepath.Join(dir, "compose.override.yaml")
		require.NoError(t, os.WriteFile(profile, []byte("{}"), 0o600)) // which the user makes
		require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(block[1], []byte("./chromium.json"), []byte(profile)), 0o600))
		require.Contains(t, composeSet(t, slices.Concat([]string{"-f", file}, profiles), "config"), "hydrallm/enricher-chromium")
	}
}
