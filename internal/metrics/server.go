package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves /metrics and /healthz over HTTP.
type Server struct {
	l net.Listener
	s *http.Server
}

// Listen opens a TCP address, such as localhost:9464, and registers what is served there: the source's counts, methods (may be
// nil), and braid's own CPU time and memory as process_*. Nothing is served before Serve.
func Listen(addr string, src Source, methods *Methods, o Options) (*Server, error) {
	reg := prometheus.NewPedanticRegistry()
	all := []prometheus.Collector{NewCollector(src, o), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	if methods != nil {
		all = append(all, methods)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 10 * time.Second, EnableOpenMetrics: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := src.Metrics(); err != nil {
			http.Error(w, "not well: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	return &Server{l: l, s: &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}}, nil
}

// Addr is the address that it listens on, with the port that the system chose if none was named.
func (s *Server) Addr() string { return s.l.Addr().String() }

// Serve serves until Close, and then returns nil.
func (s *Server) Serve() error {
	if err := s.s.Serve(s.l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Close waits a moment for scrapes that are under way, and ends.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.s.Shutdown(ctx); err != nil {
		return s.s.Close()
	}
	s.l.Close() // if Serve was never called
	return nil
}
