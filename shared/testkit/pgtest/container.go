package pgtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"
)

const (
	imageTag         = "17-alpine"
	containerSeconds = 1800 // the container removes itself after that, whatever happens to the tests
)

// startContainer runs the official image where there is Docker but no PostgreSQL.
func startContainer() (*server, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("finding Docker: %w", err)
	}
	if err := pool.Client.Ping(); err != nil {
		return nil, fmt.Errorf("reaching Docker: %w", err)
	}
	password := rand.Text()
	res, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository: "postgres", Tag: imageTag,
		Env: []string{"POSTGRES_USER=" + superuser, "POSTGRES_PASSWORD=" + password, "POSTGRES_DB=postgres"},
		Cmd: []string{"postgres", "-c", "fsync=off", "-c", "max_connections=200"},
	}, func(hc *docker.HostConfig) { hc.AutoRemove = true })
	if err != nil {
		return nil, fmt.Errorf("running a PostgreSQL container: %w", err)
	}
	stop := func() error { return pool.Purge(res) }
	srv := &server{
		admin: &url.URL{
			Scheme: "postgres", User: url.UserPassword(superuser, password), Host: res.GetHostPort("5432/tcp"),
			Path: "/postgres", RawQuery: "sslmode=disable",
		},
		stop: stop,
	}
	pool.MaxWait = setupWait
	if err := errors.Join(res.Expire(containerSeconds), pool.Retry(srv.ready)); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the PostgreSQL container: %w", err), stop())
	}
	return srv, nil
}
