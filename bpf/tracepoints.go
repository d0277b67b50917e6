package bpf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// tracefsFolders are where the kernel's events may be described, as the kernel's documentation has it.
var tracefsFolders = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

var errNoTracefs = errors.New("no tracefs: mount -t tracefs tracefs /sys/kernel/tracing (braid doctor: tracefs)")

// classic returns whether a program sees the record that a tracepoint makes, not its arguments. Its hook is "group/name".
func classic(hook string) bool { return strings.Contains(hook, "/") }

// recordFields are what binder.h takes for the records of its tracepoints: field, offset and size.
var recordFields = map[string][]string{
	"binder/binder_transaction": {
		"debug_id 8 4", "target_node 12 4", "to_proc 16 4", "to_thread 20 4", "reply 24 4", "code 28 4", "flags 32 4",
	},
	"binder/binder_transaction_received": {"debug_id 8 4"},
	"binder/binder_wait_for_work":        {"proc_work 8 1", "transaction_stack 9 1", "thread_todo 10 1"},
}

// hasBinder returns whether the kernel has binder, built in or loaded as a module.
func hasBinder(types kernelTypes) bool {
	if types.hasHook("binder_transaction") {
		return true
	}
	for _, f := range append(tracefsFolders, "/sys/module/binder_linux") {
		if f != "/sys/module/binder_linux" {
			f = filepath.Join(f, "events/binder")
		}
		if _, err := os.Stat(f); err == nil {
			return true
		}
	}
	return false
}

// checkRecord returns nil if a tracepoint's records are what recordFields says.
func checkRecord(hook string) error {
	for _, folder := range tracefsFolders {
		text, err := os.ReadFile(filepath.Join(folder, "events", hook, "format"))
		if err == nil {
			return checkFormat(text, recordFields[hook])
		}
		if _, err := os.Stat(filepath.Join(folder, "events")); err == nil {
			return errNoTracepoint
		}
	}
	return errNoTracefs
}

// checkFormat compares a tracepoint's format file, whose lines are such as
//
//	field:int debug_id;	offset:8;	size:4;	signed:1;
func checkFormat(text []byte, want []string) error {
	var have []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		parts := strings.Split(s.Text(), ";")
		declaration, ok := strings.CutPrefix(strings.TrimSpace(parts[0]), "field:")
		if !ok || len(parts) < 3 {
			continue
		}
		name := declaration[strings.LastIndexByte(declaration, ' ')+1:]
		_, offset, _ := strings.Cut(parts[1], ":")
		_, size, _ := strings.Cut(parts[2], ":")
		have = append(have, fmt.Sprintf("%s %s %s", name, offset, size))
	}
	for _, f := range want {
		if !slices.Contains(have, f) {
			return fmt.Errorf("this kernel's tracepoint has other fields: no %q (name, offset, size) among %q", f, have)
		}
	}
	return nil
}

// configureServers says whether threads of other processes that work for a target's binder transactions are followed.
func (l *loader) configureServers(spec *ebpf.CollectionSpec, pages uint32) error {
	v := spec.Variables["follow_servers"]
	if v == nil {
		return nil
	}
	if l.binder {
		spec.Maps["servers"].MaxEntries = pages
	}
	if err := v.Set(l.binder); err != nil {
		return fmt.Errorf("set follow_servers: %w", err)
	}
	return nil
}
