package bpf

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"braid/internal/kevent"

	"github.com/cilium/ebpf/btf"
)

// TestLayout compares the committed object's types with internal/kevent: sizes, fields, offsets.
func TestLayout(t *testing.T) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(_ProcessBytes))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]uint64{}
	for _, v := range cEnum(t, spec, "event_kind") {
		kinds[v.Name] = v.Value
	}
	seen := 0
	for _, c := range []struct {
		structure string
		body      any
		kinds     []kevent.Kind
	}{
		{"switch_event", kevent.Switch{}, []kevent.Kind{kevent.KindSwitch}},
		{"waking_event", kevent.Waking{}, []kevent.Kind{kevent.KindWaking}},
		{"fork_event", kevent.Fork{}, []kevent.Kind{kevent.KindFork}},
		{"exec_event", kevent.Exec{}, []kevent.Kind{kevent.KindExec}},
		{"exit_event", kevent.Exit{}, []kevent.Kind{kevent.KindExit}},
		{"rename_event", kevent.Rename{}, []kevent.Kind{kevent.KindRename}},
		{"migrate_event", kevent.Migrate{}, []kevent.Kind{kevent.KindMigrate}},
		{"freq_event", kevent.Freq{}, []kevent.Kind{kevent.KindFreq}},
		{"idle_event", kevent.Idle{}, []kevent.Kind{kevent.KindIdle}},
		{"affinity_event", kevent.Affinity{}, []kevent.Kind{kevent.KindAffinity}},
		{"rq_event", kevent.Rq{}, []kevent.Kind{kevent.KindRqIssue, kevent.KindRqComplete}},
		{"fsync_event", kevent.Fsync{}, []kevent.Kind{kevent.KindFsync}},
		{"major_fault_event", kevent.MajorFault{}, []kevent.Kind{kevent.KindMajorFault}},
		{"reclaim_event", kevent.Reclaim{}, []kevent.Kind{kevent.KindReclaim}},
		{"syscall_wait_event", kevent.SyscallWait{}, []kevent.Kind{kevent.KindSyscallWait}},
		{"futex_wake_event", kevent.FutexWake{}, []kevent.Kind{kevent.KindFutexWake}},
		{"binder_transaction_event", kevent.BinderTransaction{}, []kevent.Kind{kevent.KindBinderTransaction}},
		{"binder_received_event", kevent.BinderReceived{}, []kevent.Kind{kevent.KindBinderReceived}},
		{"binder_done_event", kevent.BinderDone{}, []kevent.Kind{kevent.KindBinderDone}},
		{"announce_event", kevent.Announce{}, []kevent.Kind{kevent.KindAnnounce}},
		{"fired_event", kevent.Fired{}, []kevent.Kind{kevent.KindFired}},
	} {
		s := cStruct(t, spec, c.structure)
		for _, k := range c.kinds {
			seen++
			if int(s.Size) != kevent.Size(k) {
				t.Errorf("%s has %d bytes in C, %v %d in Go", c.structure, s.Size, k, kevent.Size(k))
			}
			if name := "KIND_" + strings.ToUpper(k.String()); kinds[name] != uint64(k) {
				t.Errorf("%s is %d in C, %d in Go", name, kinds[name], k)
			}
		}
		if s.Members[0].Name != "h" || s.Members[0].Offset != 0 {
			t.Errorf("%s does not begin with its header", c.structure)
		}
		compareFields(t, c.structure, s.Members[1:], reflect.TypeOf(c.body), kevent.HeaderSize)
	}
	if seen != len(kinds) {
		t.Errorf("%d kinds compared, C has %d", seen, len(kinds))
	}
	header := cStruct(t, spec, "event_header")
	if header.Size != kevent.HeaderSize {
		t.Errorf("the header has %d bytes in C, %d in Go", header.Size, kevent.HeaderSize)
	}
	compareFields(t, "event_header", header.Members, reflect.TypeOf(kevent.Header{}), 0)
}

// compareFields matches C's next_tid with Go's NextTid, leaving padding out.
func compareFields(t *testing.T, structure string, members []btf.Member, g reflect.Type, base uintptr) {
	t.Helper()
	fields := map[string]reflect.StructField{}
	for i := range g.NumField() {
		if f := g.Field(i); f.Name != "_" {
			fields[strings.ToLower(f.Name)] = f
		}
	}
	for _, m := range members {
		if m.Name == "pad" {
			continue
		}
		name := strings.ReplaceAll(m.Name, "_", "")
		f, ok := fields[name]
		if !ok {
			t.Errorf("%s.%s is not in %v", structure, m.Name, g)
			continue
		}
		delete(fields, name)
		size, err := btf.Sizeof(m.Type)
		if err != nil {
			t.Fatal(err)
		}
		if uintptr(m.Offset.Bytes()) != base+f.Offset || uintptr(size) != f.Type.Size() {
			t.Errorf("%s.%s: offset %d size %d in C, %d and %d in Go", structure, m.Name, m.Offset.Bytes(), size, base+f.Offset, f.Type.Size())
		}
	}
	for name := range fields {
		t.Errorf("%v.%s is not in %s", g, name, structure)
	}
}

func TestCounterNames(t *testing.T) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(_ProcessBytes))
	if err != nil {
		t.Fatal(err)
	}
	values := cEnum(t, spec, "counter")
	if len(values) != len(counterNames)+1 {
		t.Fatalf("C has %d counters, Go %d", len(values)-1, len(counterNames))
	}
	for i, name := range counterNames {
		if want := "kernel_" + strings.ToLower(strings.TrimPrefix(values[i].Name, "COUNT_")); name != want || values[i].Value != uint64(i) {
			t.Errorf("counter %d is %s, C says %s = %d", i, name, want, values[i].Value)
		}
	}
}

// TestNames compares the values and names of what announcements, waits and limits are about.
func TestNames(t *testing.T) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(_ProcessBytes))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		enum, prefix string
		name         func(uint64) string
	}{
		{"announcement", "ANNOUNCE_", func(v uint64) string { return kevent.Announcement(v).String() }},
		{"wait_call", "WAIT_", func(v uint64) string { return kevent.WaitCall(v).String() }},
		{"file_kind", "FILE_", func(v uint64) string { return kevent.FileKind(v).String() }},
		{"wake_op", "WAKE_", func(v uint64) string { return kevent.WakeOp(v).String() }},
	} {
		for _, v := range cEnum(t, spec, e.enum) {
			if want := e.prefix + strings.ToUpper(e.name(v.Value)); v.Name != want && !strings.HasSuffix(v.Name, "_MAX") {
				t.Errorf("%s is %d in C, Go has %s there", v.Name, v.Value, want)
			}
		}
	}
	for _, v := range cEnum(t, spec, "limit") {
		want := "LIMIT_" + strings.ToUpper(kevent.Limit(v.Value).String())
		if v.Value == kevent.Limits {
			want = "LIMIT_MAX"
		}
		if v.Name != want {
			t.Errorf("%s is %d in C, Go has %s there", v.Name, v.Value, want)
		}
	}
	if got := kevent.LimitMethod.String(); got != "method" {
		t.Errorf("the limit of a probe is called %q", got)
	}
}

func cStruct(t *testing.T, spec *btf.Spec, name string) *btf.Struct {
	t.Helper()
	var s *btf.Struct
	if err := spec.TypeByName(name, &s); err != nil {
		t.Fatalf("struct %s: %v", name, err)
	}
	return s
}

func cEnum(t *testing.T, spec *btf.Spec, name string) []btf.EnumValue {
	t.Helper()
	var e *btf.Enum
	if err := spec.TypeByName(name, &e); err != nil {
		t.Fatalf("enum %s: %v", name, err)
	}
	return e.Values
}
