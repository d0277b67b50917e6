// Package steptest holds tests that go through trace points one instruction at a time, with ptrace, and deliver a signal
// at each of them. It has no code of its own.
package steptest
