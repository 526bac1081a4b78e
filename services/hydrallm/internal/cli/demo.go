package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

type demoCmd struct {
	Port port `help:"Port to listen on; without it 8100, or a free one when that is taken." placeholder:"PORT"`
}

const (
	demoPort  = 8100
	demoDelay = 40 * time.Millisecond
)

// Run serves with a mock upstream until the process is told to stop.
func (c demoCmd) Run(a *App) (err error) {
	dir, err := os.MkdirTemp("", "hydrallm-demo-")
	if err != nil {
		return fmt.Errorf("creating a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	mock := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: demoDelay})
	if err := mock.Start(a.Ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Ctx), mockDrain)
		defer cancel()
		err = errors.Join(err, mock.Stop(ctx))
	}()
	listen := int(c.Port)
	if listen == 0 {
		listen = choosePort(a.Ctx)
	}
	settings, err := demoSettings(dir, listen, mock.Addr().String())
	if err != nil {
		return err
	}
	return process.Observed(a.Ctx, settings, "hydrallm-demo", a.Out, func(log *slog.Logger) error {
		settings.Report(a.Ctx, log)
		return gateway.Run(a.Ctx, settings, log, lifecycle.Named{Name: "the announcement", Service: announcement(func() error {
			_, err := fmt.Fprintf(a.Out, demoText, settings.Source, settings.Server.Bind())
			return err
		})})
	})
}

const demoText = `
HydraLLM runs with a mock upstream. Its configuration is %[1]s. Try:

  curl -N http://%[2]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model": "demo", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'

The mock does what the message says: "call a tool", "think", "fail 429". docs/mock.md has the list. The model "demo-failover" has a first
upstream that always fails, "demo-embedding" makes vectors. The web interface is
http://%[2]s/ui, with the admin key "demo". Ctrl-C ends the demo and removes its data.

`

var demoConfig = template.Must(template.New("demo").Parse(`# Configuration of "hydrallm demo".
server: {host: 127.0.0.1, port: {{.Port}}, admin_key: demo}

providers:
  - {id: mock, url: "http://{{.Mock}}/v1", key: no-secret-for-the-mock, default_models: {free: mock}}

upstreams:
  - {id: answers, provider: mock, model: mock}
  - {id: fails, provider: mock, model: unavailable}
  - {id: vectors, provider: mock, model: mock-embedding}

models:
  - {name: demo, upstreams: [answers]}
  - {name: demo-failover, upstreams: [fails, answers]}
  - {name: demo-embedding, upstreams: [vectors]}

routing: {priority: [mock], large: mock, final_fallback: "", aliases: {}}
sessions: {database: "sqlite:{{.Dir}}/hydrallm.db"}
nats: {store_dir: "{{.Dir}}/nats"}
`))

func demoSettings(dir string, listen int, mock string) (process.Settings, error) {
	var text strings.Builder
	values := struct {
		Port      int
		Mock, Dir string
	}{listen, mock, filepath.ToSlash(dir)}
	if err := demoConfig.Execute(&text, values); err != nil {
		return process.Settings{}, fmt.Errorf("writing the configuration of the demo: %w", err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return process.Settings{}, fmt.Errorf("writing the configuration of the demo: %w", err)
	}
	// The environment of the user must not change what the demo does.
	env := config.Environment{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}
	return process.LoadFrom(env, process.Overrides{})
}

// choosePort gives the usual port, or a free one when that is taken.
func choosePort(ctx context.Context) int {
	var lc net.ListenConfig
	for _, p := range []int{demoPort, 0} {
		ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			continue
		}
		defer ln.Close() //nolint:errcheck // only its number was wanted
		if addr, ok := ln.Addr().(*net.TCPAddr); ok {
			return addr.Port
		}
	}
	return demoPort
}
