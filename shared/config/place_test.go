package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// data is beside the configuration file, wherever the process was started. What an older version put there is used.
func TestPlacesOfData(t *testing.T) {
	t.Parallel()
	const relative = `
server: {host: localhost}
providers: [{id: groq, key: k}]
nats: {credentials: c.creds, ca: ca.pem, cert: c.pem, key: /k.pem, url: "nats://h"}
log: {file: logs/g.log}
web: {intent: {patterns_dir: p, keywords_dir: /k}}
`
	file := environment(t, nil, map[string]string{"config.yaml": relative})
	env := environment(t, map[string]string{"CONFIG_PATH": filepath.Join(file.Dir, "config.yaml")}, nil)
	c, warnings, err := config.Load(env)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, config.Secret("sqlite:"+filepath.Join(file.Dir, "data/hydrallm.db")), c.Sessions.Database)
	require.Equal(t, filepath.Join(file.Dir, "data/nats"), c.NATS.StoreDir)
	require.Equal(t, filepath.Join(file.Dir, "c.creds"), c.NATS.Credentials)
	require.Equal(t, []string{filepath.Join(file.Dir, "ca.pem"), filepath.Join(file.Dir, "c.pem"), "/k.pem"}, []string{c.NATS.CA, c.NATS.Cert, c.NATS.Key})
	require.Equal(t, filepath.Join(file.Dir, "logs/g.log"), c.Log.File)
	require.Equal(t, filepath.Join(file.Dir, "p"), c.Web.Intent.PatternsDir)
	require.Equal(t, "/k", c.Web.Intent.KeywordsDir)

	require.NoError(t, os.MkdirAll(filepath.Join(env.Dir, "data/nats"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(env.Dir, "data/hydrallm.db"), nil, 0o600))
	c, warnings, err = config.Load(env)
	require.NoError(t, err)
	require.Equal(t, config.Secret("sqlite:"+filepath.Join(env.Dir, "data/hydrallm.db")), c.Sessions.Database)
	require.Equal(t, filepath.Join(env.Dir, "data/nats"), c.NATS.StoreDir)
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0].Message, "move it to "+filepath.Join(file.Dir, "data/hydrallm.db"))

	require.NoError(t, os.MkdirAll(filepath.Join(file.Dir, "data/nats"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(file.Dir, "data/hydrallm.db"), nil, 0o600))
	c, warnings, err = config.Load(env)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, filepath.Join(file.Dir, "data/nats"), c.NATS.StoreDir, "what is at the right place wins")
}

// DATA_DIR is relative to the working directory, and gives way to what the file says.
func TestDataDir(t *testing.T) {
	t.Parallel()
	files := map[string]string{"config.yaml": "{server: {host: localhost}, providers: [{id: groq, key: k}], nats: {store_dir: own}}"}
	file := environment(t, nil, files)
	env := environment(t, map[string]string{"CONFIG_PATH": filepath.Join(file.Dir, "config.yaml"), "DATA_DIR": "d"}, nil)
	c, warnings, err := config.Load(env)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, config.Secret("sqlite:"+filepath.Join(env.Dir, "d/hydrallm.db")), c.Sessions.Database)
	require.Equal(t, filepath.Join(file.Dir, "own"), c.NATS.StoreDir)

	require.NoError(t, os.Mkdir(filepath.Join(env.Dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(env.Dir, "data/hydrallm.db"), nil, 0o600))
	c, warnings, err = config.Load(env)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Equal(t, config.Secret("sqlite:"+filepath.Join(env.Dir, "data/hydrallm.db")), c.Sessions.Database)

	env = environment(t, map[string]string{"DATA_DIR": "d", "HOST": "localhost"}, nil)
	c, _, err = config.Load(env)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(env.Dir, "d/nats"), c.NATS.StoreDir)
	c, _, err = config.Load(environment(t, nil, nil))
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(c.NATS.StoreDir))
}
