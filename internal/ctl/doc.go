// Package ctl is the control socket of `braid watch`: the protocol, its server, its client, and the table that
// `braid status` shows.
//
// A client connects to a unix socket and writes requests, one JSON object a line; the server answers each with one line,
// in order. Only subscribe is answered with many. docs/socket.md describes every field.
//
// Who is on the other side of the socket is asked of the kernel (SO_PEERCRED) before the first byte is read. Root and the
// daemon's own user are served, everybody else is told so and closed. Nothing that a client does holds the daemon up:
// lines, clients and waiting have limits.
package ctl
