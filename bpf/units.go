package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// unit is one eBPF object: its programs and what this kernel needs to know of them.
type unit struct {
	name string
	// loadBTF and loadRaw return the object for tp_btf and for raw_tp.
	loadBTF, loadRaw func() (*ebpf.CollectionSpec, error)
	// watchBTF and watchRaw are the same for Options.Watch, where that makes a difference.
	watchBTF, watchRaw func() (*ebpf.CollectionSpec, error)
	// vital are the hooks without which the unit records nothing of use.
	vital []string
	// configure sets the object's variables to the kernel's prototypes.
	configure func(*ebpf.CollectionSpec, kernelTypes) error
}

var processUnit = unit{
	name:    "process",
	loadBTF: loadProcess, loadRaw: loadProcessRaw,
	vital: []string{"sched_process_fork", "sched_process_exec", "sched_process_exit", "sched_process_free"},
}

// watchUnit announces processes; it is loaded with Options.Watch.
var watchUnit = unit{
	name:    "watch",
	loadBTF: loadWatch, loadRaw: loadWatchRaw,
	vital: []string{"sched_process_fork", "sched_process_exec", "sched_process_exit", "sched_process_free"},
}

var optionalUnits = []unit{
	{
		name:    UnitSched,
		loadBTF: loadSched, loadRaw: loadSchedRaw, watchBTF: loadSchedWatch, watchRaw: loadSchedWatchRaw,
		vital:     []string{"sched_switch"},
		configure: configureSched,
	},
	{
		name:    UnitIO,
		loadBTF: loadIo, loadRaw: loadIoRaw, watchBTF: loadIoWatch, watchRaw: loadIoWatchRaw,
		vital:     []string{"block_bio_queue", "block_rq_issue", "block_rq_complete"},
		configure: configureIO,
	},
	{
		name:    UnitWait,
		loadBTF: loadWait, loadRaw: loadWaitRaw,
		vital: []string{"sys_enter", "sys_exit", "sched_process_exit"},
	},
}

func configureSched(spec *ebpf.CollectionSpec, types kernelTypes) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	spec.Maps["cpus"].MaxEntries = uint32(cpus)
	// sched_switch(preempt, prev, next, prev_state): the last since Linux 5.18.
	return spec.Variables["switch_has_state"].Set(len(types.hookParams("sched_switch")) >= 4)
}

func configureIO(spec *ebpf.CollectionSpec, types kernelTypes) error {
	for _, a := range []struct{ variable, hook, structure string }{
		{"bio_queue_arg", "block_bio_queue", "bio"},
		{"getrq_arg", "block_getrq", "bio"},
		{"bio_complete_arg", "block_bio_complete", "bio"},
		{"rq_issue_arg", "block_rq_issue", "request"},
	} {
		if !types.hasHook(a.hook) {
			continue
		}
		i := pointerParam(types.hookParams(a.hook), a.structure)
		if i < 0 || i > 2 {
			return fmt.Errorf("tracepoint %s of this kernel has no struct %s among its first arguments", a.hook, a.structure)
		}
		if err := spec.Variables[a.variable].Set(uint32(i)); err != nil {
			return fmt.Errorf("set %s: %w", a.variable, err)
		}
	}
	// block_rq_complete(rq, error, nr_bytes): int error, since Linux 5.17 blk_status_t.
	status := false
	if p := types.hookParams("block_rq_complete"); len(p) > 1 {
		t, ok := p[1].Type.(*btf.Typedef)
		status = ok && t.Name == "blk_status_t"
	}
	return spec.Variables["complete_has_status"].Set(status)
}

// kernelTypes is the running kernel's BTF.
type kernelTypes struct {
	spec *btf.Spec
	// external says that it came from a file, so that the kernel cannot check accesses against it.
	external bool
}

// hookProto returns the prototype of a tracepoint's probes, void (*)(void *data, arguments...), or nil.
func (k kernelTypes) hookProto(name string) *btf.FuncProto {
	var t *btf.Typedef
	if err := k.spec.TypeByName("btf_trace_"+name, &t); err != nil {
		return nil
	}
	p, ok := t.Type.(*btf.Pointer)
	if !ok {
		return nil
	}
	f, _ := p.Target.(*btf.FuncProto)
	return f
}

func (k kernelTypes) hasHook(name string) bool { return k.hookProto(name) != nil }

// hookParams returns a tracepoint's arguments, without the probe's own first one.
func (k kernelTypes) hookParams(name string) []btf.FuncParam {
	f := k.hookProto(name)
	if f == nil || len(f.Params) == 0 {
		return nil
	}
	return f.Params[1:]
}

// pointerParam returns the index of the first parameter that points to the structure, or -1.
func pointerParam(params []btf.FuncParam, structure string) int {
	for i, p := range params {
		ptr, ok := btf.UnderlyingType(p.Type).(*btf.Pointer)
		if !ok {
			continue
		}
		if s, ok := btf.UnderlyingType(ptr.Target).(*btf.Struct); ok && s.Name == structure {
			return i
		}
	}
	return -1
}
