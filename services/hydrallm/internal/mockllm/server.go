package mockllm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config is how the mock behaves.
type Config struct {
	Listen string        // host:port; port 0 = a free one
	Delay  time.Duration // before each word, and each piece of a tool call

	// Wrap puts something before the handler, such as a switch that breaks it; nil = nothing.
	Wrap func(http.Handler) http.Handler
}

// Server is the mock upstream. It is a lifecycle.Service.
type Server struct {
	cfg Config

	http    *http.Server
	addr    net.Addr
	serving sync.WaitGroup
}

// New makes a server that has not started.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

// Start listens and serves.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listening for the mock upstream: %w", err)
	}
	s.addr = ln.Addr()
	handler := s.handler()
	if s.cfg.Wrap != nil {
		handler = s.cfg.Wrap(handler)
	}
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	s.serving.Go(func() { _ = s.http.Serve(ln) }) // ends with Stop
	return nil
}

// Addr is the address on which the server listens, or nil when it was never started.
func (s *Server) Addr() net.Addr { return s.addr }

// Stop lets answers under way end until ctx ends and cuts off the rest.
func (s *Server) Stop(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if errors.Is(err, ctx.Err()) && err != nil {
		err = s.http.Close()
	}
	s.serving.Wait()
	if err != nil {
		return fmt.Errorf("stopping the mock upstream: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", listModels)
	mux.HandleFunc("GET /v1/models/{id}", showModel)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/completions", s.completions)
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	mux.HandleFunc("POST /v1/moderations", s.media(moderate))
	mux.HandleFunc("POST /v1/audio/speech", s.media(speak))
	mux.HandleFunc("POST /v1/audio/transcriptions", s.media(transcribe))
	mux.HandleFunc("POST /v1/audio/translations", s.media(transcribe))
	mux.HandleFunc("POST /v1/images/generations", s.media(draw))
	mux.HandleFunc("POST /v1/images/edits", s.media(draw))
	mux.HandleFunc("POST /v1/images/variations", s.media(draw))
	mux.HandleFunc("POST /v1/rerank", s.media(rank))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&failure{status: http.StatusNotFound, typ: "invalid_request_error", message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}).send(w)
	})
	return mux
}
