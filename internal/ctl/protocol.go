package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Version is the protocol's version. It changes when an old client or server could misunderstand a new one; new fields
// alone do not change it, since unknown fields of an answer are ignored.
const Version = 1

// Limits of the protocol.
const (
	MaxRequest  = 4 << 10 // bytes of a request's line
	MaxResponse = 8 << 20 // bytes of a response's line
	maxText     = 256     // bytes of a name or reason in a request
)

// Command says what a request asks for.
type Command string

const (
	CmdStatus    Command = "status"
	CmdStart     Command = "start"     // threads on
	CmdStop      Command = "stop"      // threads off
	CmdFlush     Command = "flush"     // write what the rings hold
	CmdTrigger   Command = "trigger"   // fire a trigger, as if its condition were met
	CmdSubscribe Command = "subscribe" // a status again and again, until the client closes
)

// Selection chooses targets, and threads of them. The zero value is all.
type Selection struct {
	PID     int    `json:"pid,omitempty"`     // 0: any
	Program string `json:"program,omitempty"` // the target's name; * ? [a-z] stand for parts of it. Empty: any
	Thread  string `json:"thread,omitempty"`  // a thread's id or name, with the same signs; for start and stop alone
}

// Request is one line of a client.
type Request struct {
	Version    int     `json:"v"`
	Command    Command `json:"cmd"`
	Selection          // pid, program, thread
	Name       string  `json:"name,omitempty"`        // trigger: which one; empty: no configured one, "socket"
	Why        string  `json:"why,omitempty"`         // flush, trigger: a reason that the trace will carry
	IntervalMs int     `json:"interval_ms,omitempty"` // subscribe: time between two answers; 0 is 1000; 100 to 60000
}

// Code is the kind of an error, for programs to branch on.
type Code string

const (
	CodeBadRequest Code = "bad_request" // the request makes no sense; the connection is closed after it
	CodeVersion    Code = "version"     // the other side speaks another version
	CodeDenied     Code = "denied"      // not root, and not the daemon's user
	CodeBusy       Code = "busy"        // too many clients
	CodeNotFound   Code = "not_found"   // no such target, thread or trigger
	CodeFailed     Code = "failed"      // it was tried, and failed
)

// Response is one line of the server.
type Response struct {
	Version int       `json:"v"`
	Code    Code      `json:"code,omitempty"` // empty: it worked
	Error   string    `json:"error,omitempty"`
	Status  *Status   `json:"status,omitempty"`  // status, subscribe
	Threads int       `json:"threads,omitempty"` // start, stop: how many threads were asked
	Flushed []Flushed `json:"flushed,omitempty"` // flush, trigger
}

// Handler does what requests ask for. Its methods are called by several goroutines at the same time, one for each
// client. The context ends when the client goes or the server closes. An error that wraps ErrNotFound becomes
// CodeNotFound, any other CodeFailed, with its text.
type Handler interface {
	Status(ctx context.Context) (*Status, error)
	// Start and Stop return how many threads were asked.
	Start(ctx context.Context, s Selection) (threads int, err error)
	Stop(ctx context.Context, s Selection) (threads int, err error)
	Flush(ctx context.Context, s Selection, why string) ([]Flushed, error)
	// Trigger fires the trigger of that name; an empty name is a trigger of nothing but this request.
	Trigger(ctx context.Context, name string, s Selection, why string) ([]Flushed, error)
}

// ErrNotFound is wrapped by a Handler when nothing matches a request's selection or name.
var ErrNotFound = errors.New("not found")

// Error is a response that carries a code.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// Is makes errors.Is(err, ErrNotFound) true on the client's side as well.
func (e *Error) Is(target error) bool { return target == ErrNotFound && e.Code == CodeNotFound }

func badRequest(format string, args ...any) *Error {
	return &Error{CodeBadRequest, fmt.Sprintf(format, args...)}
}

// DecodeRequest reads one line, which comes from anyone who may connect: it must be one object with known fields, valid
// UTF-8, and every value within its limits. The error is an *Error.
func DecodeRequest(line []byte) (*Request, error) {
	if len(line) > MaxRequest {
		return nil, badRequest("the request is longer than %d bytes", MaxRequest)
	}
	if !utf8.Valid(line) {
		return nil, badRequest("the request is not UTF-8")
	}
	// The version comes first: another version may have other fields.
	var v struct {
		Version *int `json:"v"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return nil, badRequest("the request is not a JSON object: %v", err)
	}
	if v.Version == nil {
		return nil, badRequest(`the request has no version "v"`)
	}
	if *v.Version != Version {
		return nil, &Error{CodeVersion, fmt.Sprintf("this braid watch speaks version %d, the request is of version %d", Version, *v.Version)}
	}
	var r Request
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, badRequest("the request: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, badRequest("more than one object in a line")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &r, nil
}

// check returns an *Error for what a handler should not see.
func (r *Request) check() error {
	var selects, threads, name, why, interval bool
	switch r.Command {
	case CmdStatus:
	case CmdStart, CmdStop:
		selects, threads = true, true
	case CmdFlush:
		selects, why = true, true
	case CmdTrigger:
		selects, name, why = true, true, true
	case CmdSubscribe:
		interval = true
	default:
		return badRequest("there is no command %q", clip(string(r.Command)))
	}
	for _, f := range []struct {
		name, value string
		allowed     bool
	}{{"program", r.Program, selects}, {"thread", r.Thread, threads}, {"name", r.Name, name}, {"why", r.Why, why}} {
		switch {
		case f.value != "" && !f.allowed:
			return badRequest("%s takes no %q", r.Command, f.name)
		case len(f.value) > maxText:
			return badRequest("%q is longer than %d bytes", f.name, maxText)
		case strings.ContainsFunc(f.value, func(c rune) bool { return c < ' ' || c == 0x7f }):
			return badRequest("%q holds a control character", f.name)
		}
	}
	switch {
	case r.PID != 0 && !selects:
		return badRequest(`%s takes no "pid"`, r.Command)
	case r.PID < 0 || r.PID > 1<<22:
		return badRequest(`"pid" %d is no process id`, r.PID)
	case r.IntervalMs != 0 && !interval:
		return badRequest(`%s takes no "interval_ms"`, r.Command)
	case r.IntervalMs != 0 && (r.IntervalMs < 100 || r.IntervalMs > 60000):
		return badRequest(`"interval_ms" %d is not from 100 to 60000`, r.IntervalMs)
	}
	return nil
}

// clip shortens a foreign text for an error.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
