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
	"go.yaml.in/yaml/v3"

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

// every container of the set is confined, and the images of the gateway hold nothing but the binary.
func TestComposeConfines(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(repository + "compose.yaml")
	require.NoError(t, err)
	var set struct {
		Services map[string]struct {
			Image       string
			User        string
			Privileged  bool
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			NetworkMode string   `yaml:"network_mode"`
			Ports       []string
		}
	}
	require.NoError(t, yaml.Unmarshal(file, &set))
	require.NotEmpty(t, set.Services)
	for name, s := range set.Services {
		require.True(t, s.ReadOnly || name == "grafana", "%s writes to its image", name) // Grafana unpacks plugins into it
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Empty(t, s.CapAdd, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, name)
		require.False(t, s.Privileged || s.NetworkMode != "", name)
		for _, port := range s.Ports {
			require.Regexp(t, `^(127\.0\.0\.1|\$\{HYDRALLM_BIND:-127\.0\.0\.1\}):`, port, "%s is published to everybody", name)
		}
	}
	image, err := os.ReadFile(repository + "deploy/Dockerfile")
	require.NoError(t, err)
	_, final, found := strings.Cut(string(image), "\nFROM scratch\n")
	require.True(t, found)
	require.Contains(t, final, "\nUSER 10001:10001\n")
	require.NotRegexp(t, `(?m)^(FROM|RUN|ADD|USER root)`, final, "nothing is run or added in the final stage")
}
