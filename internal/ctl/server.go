package ctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrRuns is returned by Listen when a live daemon listens on the socket.
var ErrRuns = errors.New("another braid watch runs")

// Limits of a server, so that clients can not hold it up.
const (
	maxClients    = 32
	idleTimeout   = 60 * time.Second // a client that says nothing is closed
	lineTimeout   = 5 * time.Second  // from a line's first byte to its last
	writeTimeout  = 5 * time.Second
	handleTimeout = 60 * time.Second
)

// Server serves a Handler on a unix socket.
type Server struct {
	h    Handler
	l    *net.UnixListener
	lock *os.File // held while the server lives
	uids []uint32 // who may speak

	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	closed  bool
	clients map[net.Conn]bool
	wg      sync.WaitGroup
	idle    time.Duration // idleTimeout and lineTimeout; shorter in tests
	line    time.Duration
	write   time.Duration
}

// Listen makes the socket, with mode 0600, and its folder, if that is missing, with 0755. A socket that a dead daemon left
// is replaced; with a live one the error is ErrRuns. Nothing is served before Serve.
func Listen(path string, h Handler) (*Server, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("the control socket: %w", err)
	}
	// The lock, not the socket, says who lives: it goes with its process, however that ends.
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the control socket: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if err == unix.EWOULDBLOCK {
			return nil, fmt.Errorf("%w: it holds %s", ErrRuns, path)
		}
		return nil, fmt.Errorf("the control socket: lock %s: %w", lock.Name(), err)
	}
	s := &Server{h: h, lock: lock, uids: []uint32{0, uint32(os.Geteuid())}, clients: map[net.Conn]bool{},
		idle: idleTimeout, line: lineTimeout, write: writeTimeout}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.listen(path); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the control socket: %w", err)
	}
	return s, nil
}

func (s *Server) listen(path string) error {
	if st, err := os.Lstat(path); err == nil {
		if st.Mode().Type() != os.ModeSocket {
			return fmt.Errorf("%s is there, and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// It gets its name only once its mode is set: between bind and chmod, others could connect.
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	os.Remove(tmp)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmp, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(tmp, 0o600); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		l.Close()
		os.Remove(tmp)
		return err
	}
	s.l = l
	return nil
}

// Serve serves clients until Close, and then returns nil.
func (s *Server) Serve() error {
	for {
		c, err := s.l.AcceptUnix()
		s.mu.Lock()
		closed := s.closed
		if err == nil && !closed {
			full := len(s.clients) >= maxClients
			if !full {
				s.clients[c] = true
			}
			s.wg.Add(1)
			go s.client(c, full)
		}
		s.mu.Unlock()
		switch {
		case closed:
			if err == nil {
				c.Close()
			}
			return nil
		case err == nil:
		case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM):
			select { // there may be some again soon
			case <-time.After(100 * time.Millisecond):
			case <-s.ctx.Done():
			}
		case errors.Is(err, unix.ECONNABORTED):
		default:
			return fmt.Errorf("the control socket: %w", err)
		}
	}
}

// Close ends all clients, waits for the handler's calls that are running, and removes the socket.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.cancel()
	path := s.lock.Name()[:len(s.lock.Name())-len(".lock")]
	err := errors.Join(os.Remove(path), s.l.Close())
	for c := range s.clients {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	// The lock's file stays: whoever removed it could remove another daemon's.
	return errors.Join(err, s.lock.Close())
}

// client serves one client; full says that there are too many.
func (s *Server) client(c *net.UnixConn, full bool) {
	defer s.wg.Done()
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.clients, c)
		s.mu.Unlock()
	}()
	if err := s.allowed(c); err != nil {
		s.answer(c, failure(err))
		return
	}
	if full {
		s.answer(c, failure(&Error{CodeBusy, fmt.Sprintf("%d clients are being served; try again later", maxClients)}))
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	r := lineReader{c: c, r: bufio.NewReaderSize(c, MaxRequest+1), idle: s.idle, line: s.line}
	for {
		line, err := r.next()
		if err != nil {
			var e *Error
			if errors.As(err, &e) {
				s.answer(c, failure(e))
			}
			return
		}
		req, err := DecodeRequest(line)
		if err != nil {
			s.answer(c, failure(err))
			return
		}
		if req.Command == CmdSubscribe {
			s.subscribe(ctx, cancel, c, req)
			return
		}
		hctx, hcancel := context.WithTimeout(ctx, handleTimeout)
		resp := s.handle(hctx, req)
		hcancel()
		if s.answer(c, resp) != nil {
			return
		}
	}
}

// allowed asks the kernel who is on the other side.
func (s *Server) allowed(c *net.UnixConn) error {
	uid, err := peer(c)
	if err != nil {
		return &Error{CodeDenied, fmt.Sprintf("who is asking can not be told: %v", err)}
	}
	for _, u := range s.uids {
		if uid == u {
			return nil
		}
	}
	return &Error{CodeDenied, fmt.Sprintf("user %d may not control this braid watch; only root and user %d may", uid, s.uids[1])}
}

// peer is the user who connected.
func peer(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if cerr != nil {
		return 0, cerr
	}
	return cred.Uid, nil
}

func (s *Server) handle(ctx context.Context, req *Request) *Response {
	resp := &Response{}
	var err error
	switch req.Command {
	case CmdStatus:
		resp.Status, err = s.h.Status(ctx)
	case CmdStart:
		resp.Threads, err = s.h.Start(ctx, req.Selection)
	case CmdStop:
		resp.Threads, err = s.h.Stop(ctx, req.Selection)
	case CmdFlush:
		resp.Flushed, err = s.h.Flush(ctx, req.Selection, req.Why)
	case CmdTrigger:
		resp.Flushed, err = s.h.Trigger(ctx, req.Name, req.Selection, req.Why)
	}
	if err != nil {
		return failure(err)
	}
	return resp
}

// subscribe sends statuses until the client goes or says anything.
func (s *Server) subscribe(ctx context.Context, cancel context.CancelFunc, c *net.UnixConn, req *Request) {
	every := time.Second
	if req.IntervalMs != 0 {
		every = time.Duration(req.IntervalMs) * time.Millisecond
	}
	s.wg.Add(1)
	go func() { // sees the end of the client between two answers; ends with the connection at the latest
		defer s.wg.Done()
		c.SetReadDeadline(time.Time{})
		c.Read(make([]byte, 1))
		cancel()
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s.answer(c, s.handle(ctx, &Request{Command: CmdStatus})) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func failure(err error) *Response {
	var e *Error
	switch {
	case errors.As(err, &e):
		return &Response{Code: e.Code, Error: e.Text}
	case errors.Is(err, ErrNotFound):
		return &Response{Code: CodeNotFound, Error: err.Error()}
	}
	return &Response{Code: CodeFailed, Error: err.Error()}
}

func (s *Server) answer(c net.Conn, r *Response) error {
	r.Version = Version
	b, err := json.Marshal(r)
	if err == nil && len(b) >= MaxResponse {
		err = fmt.Errorf("the answer has %d bytes, more than %d", len(b), MaxResponse)
	}
	if err != nil {
		b, _ = json.Marshal(&Response{Version: Version, Code: CodeFailed, Error: err.Error()})
	}
	c.SetWriteDeadline(time.Now().Add(s.write))
	_, err = c.Write(append(b, '\n'))
	return err
}

// lineReader reads requests with limits on their length and on the time that they take.
type lineReader struct {
	c          net.Conn
	r          *bufio.Reader
	idle, line time.Duration
}

// next returns a line without its end, valid until the next call. An *Error is for the client to know.
func (l *lineReader) next() ([]byte, error) {
	l.c.SetReadDeadline(time.Now().Add(l.idle))
	if _, err := l.r.Peek(1); err != nil {
		return nil, err
	}
	l.c.SetReadDeadline(time.Now().Add(l.line))
	b, err := l.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, badRequest("the request is longer than %d bytes", MaxRequest)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, badRequest("the request's line did not end within %v", l.line)
	case err == io.EOF && len(b) > 0:
		return nil, badRequest("the request's line has no end")
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(b, []byte("\n")), nil
}
