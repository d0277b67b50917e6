package ctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"braid/internal/android"

	"golang.org/x/sys/unix"
)

// ErrNoDaemon is returned by Dial when nobody listens on the socket.
var ErrNoDaemon = errors.New("no braid watch runs")

// DefaultPath is where the socket is if nobody says otherwise.
func DefaultPath() string {
	return android.Dir("watch.sock", "/run/braid/watch.sock")
}

// Client is a connection to a daemon. It may be used from one goroutine at a time.
type Client struct {
	c net.Conn
	r *bufio.Scanner
}

// Dial connects to a daemon's socket. The error is ErrNoDaemon if there is none.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("%w at %s; start it with braid watch", ErrNoDaemon, path)
	case errors.Is(err, os.ErrPermission):
		return nil, &Error{CodeDenied, fmt.Sprintf("%s: only root and the user of braid watch may control it", path)}
	case err != nil:
		return nil, fmt.Errorf("the control socket: %w", err)
	}
	r := bufio.NewScanner(c)
	r.Buffer(nil, MaxResponse)
	return &Client{c, r}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }

// Do sends a request and returns its answer. An answer with a code becomes an *Error. After any other error the client is of
// no more use.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if r.Command == CmdSubscribe {
		return nil, errors.New("subscribe has many answers: use Subscribe")
	}
	if err := c.send(ctx, r); err != nil {
		return nil, err
	}
	return c.receive(ctx)
}

// Subscribe calls f with a status at once and then after each interval, until f returns an error, which is returned, or the
// context ends. The client is of no more use then.
func (c *Client) Subscribe(ctx context.Context, interval time.Duration, f func(*Status) error) error {
	if err := c.send(ctx, Request{Command: CmdSubscribe, IntervalMs: int(interval.Milliseconds())}); err != nil {
		return err
	}
	for {
		resp, err := c.receive(ctx)
		if err != nil {
			return err
		}
		if resp.Status == nil {
			return errors.New("the control socket: an answer without a status")
		}
		if err := f(resp.Status); err != nil {
			return err
		}
	}
}

func (c *Client) send(ctx context.Context, r Request) error {
	r.Version = Version
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	defer c.interrupt(ctx)()
	if _, err := c.c.Write(append(b, '\n')); err != nil {
		// It may have been refused before it was read; then there is an answer that says why.
		if resp, rerr := c.receive(ctx); rerr != nil && resp == nil && errors.As(rerr, new(*Error)) {
			return rerr
		}
		return c.failed(ctx, err)
	}
	return nil
}

func (c *Client) receive(ctx context.Context) (*Response, error) {
	defer c.interrupt(ctx)()
	if !c.r.Scan() {
		err := c.r.Err()
		if err == nil {
			err = errors.New("braid watch closed the connection")
		}
		return nil, c.failed(ctx, err)
	}
	return DecodeResponse(c.r.Bytes())
}

func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the control socket: %w", err)
}

// interrupt ends a read or write when the context ends.
func (c *Client) interrupt(ctx context.Context) (stop func()) {
	end := context.AfterFunc(ctx, func() { c.c.SetDeadline(time.Unix(1, 0)) })
	return func() { end() }
}

// DecodeResponse reads a line of a server. A code in it is returned as an *Error. Unknown fields are ignored.
func DecodeResponse(line []byte) (*Response, error) {
	var r Response
	if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
		return nil, fmt.Errorf("the control socket: not an answer: %w", err)
	}
	if r.Code != "" {
		return nil, &Error{r.Code, r.Error}
	}
	if r.Version != Version {
		return nil, &Error{CodeVersion, fmt.Sprintf("braid watch speaks version %d, this braid %d", r.Version, Version)}
	}
	return &r, nil
}
