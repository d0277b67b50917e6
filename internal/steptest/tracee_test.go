package steptest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracee is the program under ptrace. All of it belongs to one goroutine that is locked to its thread, which is the
// kernel's tracer. Errors end the test: there is nothing to go on with.
type tracee struct {
	t       *testing.T
	pid     int
	mem     *os.File // /proc/PID/mem, which writes to text as well
	symbols map[string]uint64
	names   map[uint64]string // functions by address
	lo, hi  uint64            // the program's own text
	text    []byte            // what is there
}

// starts runs the program up to its first instruction. It is pinned to this thread's processor, so that its clock is one.
func startTracee(t *testing.T, bin string, env ...string) *tracee {
	t.Helper()
	pid, err := syscall.ForkExec(bin, []string{bin}, &syscall.ProcAttr{
		Env: append(os.Environ(), env...), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		t.Fatal(err)
	}
	p := &tracee{t: t, pid: pid, symbols: map[string]uint64{}, names: map[uint64]string{}}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		t.Fatalf("waiting for %s: %v, %v", bin, ws, err)
	}
	t.Cleanup(p.kill)
	p.must("PTRACE_SETOPTIONS", unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL))
	if p.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	p.locate(bin)
	return p
}

func (p *tracee) kill() {
	syscall.Kill(p.pid, syscall.SIGKILL)
	for { // all of its threads
		if _, err := unix.Wait4(-p.pid, nil, unix.WALL, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mem.Close()
}

func (p *tracee) must(what string, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// locate finds the program's functions, and its text, where it is mapped.
func (p *tracee) locate(bin string) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	p.must("mappings", err)
	var base uint64
	for line := range strings.Lines(string(maps)) {
		var lo, hi uint64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &lo, &hi, &mode); n != 3 || !strings.Contains(line, bin) {
			continue
		}
		if base == 0 {
			base = lo
		}
		if mode == "r-xp" {
			p.lo, p.hi = lo, hi
		}
	}
	f, err := elf.Open(bin)
	p.must("symbols", err)
	defer f.Close()
	if f.Type != elf.ET_DYN {
		base = 0
	}
	syms, err := f.Symbols()
	p.must("symbols", err)
	for _, s := range syms {
		if s.Value == 0 || s.Section == elf.SHN_UNDEF || strings.HasPrefix(s.Name, ".") {
			continue
		}
		p.symbols[s.Name] = base + s.Value
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			p.names[base+s.Value], _, _ = strings.Cut(s.Name, ".")
		}
	}
	p.text = make([]byte, p.hi-p.lo)
	_, err = p.mem.ReadAt(p.text, int64(p.lo))
	p.must("text", err)
}

func (p *tracee) write(at uint64, b []byte) {
	p.t.Helper()
	_, err := p.mem.WriteAt(b, int64(at))
	p.must("writing memory", err)
}

func (p *tracee) regs(tid int) (r unix.PtraceRegs) {
	p.t.Helper()
	p.must("PTRACE_GETREGS", unix.PtraceGetRegs(tid, &r))
	return r
}

// floats reads st0 and xmm0 to xmm7 (struct user_fpregs_struct, asm/user_64.h).
func (p *tracee) floats(tid int) (f [9][16]byte) {
	p.t.Helper()
	var all [512]byte
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETFPREGS, uintptr(tid), 0, uintptr(unsafe.Pointer(&all)), 0, 0); e != 0 {
		p.t.Fatal(e)
	}
	copy(f[0][:10], all[32:])
	for i := range 8 {
		copy(f[1+i][:], all[160+16*i:])
	}
	return f
}

// step goes one instruction on, or to where control is back in the program's own text. It reports the new place.
func (p *tracee) step(tid int) uint64 {
	p.t.Helper()
	p.must("PTRACE_SINGLESTEP", unix.PtraceSingleStep(tid))
	p.trapped(tid)
	r := p.regs(tid)
	if r.Rip >= p.lo && r.Rip < p.hi {
		return r.Rip
	}
	return p.excursion(tid)
}

// walk goes step by step to a mark, and returns every place on the way, this one and the mark included.
func (p *tracee) walk(tid int, mark string) []uint64 {
	p.t.Helper()
	path := []uint64{p.regs(tid).Rip}
	for end := p.symbols[mark]; path[len(path)-1] != end; {
		path = append(path, p.step(tid))
	}
	return path
}

// reach goes along a path that walk has found, from its first place to place n.
func (p *tracee) reach(tid int, path []uint64, n int) {
	p.t.Helper()
	if n == 0 {
		return
	}
	at := path[n]
	for _, a := range path[1:n] {
		if a == at { // a loop
			p.stop(tid, at)
			p.must("PTRACE_SINGLESTEP", unix.PtraceSingleStep(tid))
			p.trapped(tid)
		}
	}
	p.stop(tid, at)
}

// stop runs a thread to an address.
func (p *tracee) stop(tid int, at uint64) {
	p.t.Helper()
	p.write(at, []byte{0xcc})
	p.must("PTRACE_CONT", unix.PtraceCont(tid, 0))
	p.trapped(tid)
	p.write(at, p.text[at-p.lo:at-p.lo+1])
	r := p.regs(tid)
	if r.Rip--; r.Rip != at {
		p.t.Fatalf("did not come to %s, but to %s", p.place(at), p.where(tid))
	}
	p.must("PTRACE_SETREGS", unix.PtraceSetRegs(tid, &r))
}

// excursion runs what is not the program's own: library functions, the unwinder. They may come back elsewhere than they
// were called from, so all of the program's text is breakpoints meanwhile.
func (p *tracee) excursion(tid int) uint64 {
	p.t.Helper()
	p.write(p.lo, bytes.Repeat([]byte{0xcc}, len(p.text)))
	p.must("PTRACE_CONT", unix.PtraceCont(tid, 0))
	p.trapped(tid)
	p.write(p.lo, p.text)
	r := p.regs(tid)
	r.Rip--
	p.must("PTRACE_SETREGS", unix.PtraceSetRegs(tid, &r))
	return r.Rip
}

// trapped waits for a thread's next trap.
func (p *tracee) trapped(tid int) {
	p.t.Helper()
	var ws unix.WaitStatus
	if _, err := unix.Wait4(tid, &ws, unix.WALL, nil); err != nil || !ws.Stopped() || ws.StopSignal() != unix.SIGTRAP {
		p.t.Fatalf("thread %d: status %#x, %v; %s", tid, uint32(ws), err, p.where(tid))
	}
}

func (p *tracee) where(tid int) string {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err.Error()
	}
	return p.place(r.Rip)
}

// place names an address.
func (p *tracee) place(addr uint64) string {
	name, at := "", uint64(0)
	for a, n := range p.names {
		if a <= addr && a > at {
			name, at = n, a
		}
	}
	return fmt.Sprintf("%s+%#x (%#x)", name, addr-at, addr)
}

// run delivers a signal (or 0) to a thread and runs the program to its next mark. It returns the thread that is there,
// and the mark's name; or 0 and "" when the program has ended.
func (p *tracee) run(tid int, signal syscall.Signal) (int, string) {
	p.t.Helper()
	p.must("PTRACE_CONT", unix.PtraceCont(tid, int(signal)))
	for {
		var ws unix.WaitStatus
		id, err := unix.Wait4(-p.pid, &ws, unix.WALL, nil)
		p.must("wait", err)
		switch {
		case ws.Exited() || ws.Signaled():
			if id == p.pid {
				if ws.Signaled() || ws.ExitStatus() != 0 {
					p.t.Fatalf("the program ended with status %#x", uint32(ws))
				}
				return 0, ""
			}
		case ws.TrapCause() == unix.PTRACE_EVENT_CLONE || ws.StopSignal() == unix.SIGSTOP:
			p.must("PTRACE_CONT", unix.PtraceCont(id, 0))
		case ws.StopSignal() == unix.SIGTRAP:
			rip := p.regs(id).Rip - 1
			for _, mark := range []string{"ready", "begin", "end", "after"} {
				if p.symbols[mark+"_mark"] == rip {
					return id, mark
				}
			}
			p.t.Fatalf("a trap that is no mark: %s", p.where(id))
		default:
			if s := ws.StopSignal(); s == unix.SIGSEGV || s == unix.SIGABRT || s == unix.SIGILL || s == unix.SIGBUS {
				p.t.Fatalf("%v %s", s, p.where(id))
			}
			p.must("PTRACE_CONT", unix.PtraceCont(id, int(ws.StopSignal())))
		}
	}
}

// reap waits until a thread is gone. Until its tracer has looked, it is a zombie.
func (p *tracee) reap(tid int) {
	for {
		var ws unix.WaitStatus
		if _, err := unix.Wait4(tid, &ws, unix.WALL, nil); err != nil && !errors.Is(err, unix.EINTR) || ws.Exited() {
			return
		}
	}
}

// settle waits until the main thread sleeps: it waits for another thread to end, and does not come to the program's own
// text while that one is being stepped through.
func (p *tracee) settle() {
	p.t.Helper()
	for {
		var ws unix.WaitStatus
		if id, err := unix.Wait4(p.pid, &ws, unix.WALL|unix.WNOHANG, nil); err == nil && id == p.pid {
			p.must("PTRACE_CONT", unix.PtraceCont(id, 0)) // that it has made the thread
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", p.pid, p.pid))
		p.must("state", err)
		if _, state, _ := strings.Cut(string(b), ") "); strings.HasPrefix(state, "S") {
			return
		}
	}
}

// order says what the program does next; see steps.c.
type order struct {
	End, Target, Handler, Flags, Warm, Land, Thread int64
}

func (p *tracee) order(o order) {
	p.t.Helper()
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, o)
	p.write(p.symbols["order"], b.Bytes())
}
