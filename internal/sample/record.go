package sample

import (
	"bytes"

	"braid/internal/unwind"

	"golang.org/x/sys/unix"
)

// record is one record of a ring. Its body aliases what was read.
type record struct {
	time uint64 // as the kernel gave it
	typ  uint32
	misc uint16
	cpu  int // whose ring it was in
	body []byte
}

// idSize is what ends each record that is no sample: pid, tid; time; cpu.
const idSize = 24

// records splits what was read of a ring. What makes no sense ends it.
func records(list []record, b []byte, cpu int) []record {
	for len(b) >= 8 {
		r := record{typ: le.Uint32(b), misc: le.Uint16(b[4:]), cpu: cpu}
		size := int(le.Uint16(b[6:]))
		if size < 8 || size > len(b) {
			break
		}
		r.body, b = b[8:size], b[size:]
		switch {
		case r.typ == unix.PERF_RECORD_SAMPLE && len(r.body) >= 24:
			r.time = le.Uint64(r.body[16:])
		case r.typ != unix.PERF_RECORD_SAMPLE && len(r.body) >= idSize:
			r.time = le.Uint64(r.body[len(r.body)-16:])
		default:
			continue
		}
		list = append(list, r)
	}
	return list
}

// Markers in call chains (enum perf_callchain_context).
const (
	contextKernel = ^uint64(127)  // -128
	contextUser   = ^uint64(511)  // -512
	contextMax    = ^uint64(4094) // -4095: all from here on are markers
)

// raw is a sample as the kernel gave it.
type raw struct {
	pid, tid     uint32
	cpu          uint32
	period       uint64
	kernel, user []uint64 // as in the call chain
	abi          uint64
	regs         unwind.Regs
	stack        stackCopy
}

// decodeSample reads a sample's body. The frames use the given space.
func decodeSample(b []byte, copied bool, frames []uint64) (s raw, space []uint64, ok bool) {
	if len(b) < 48 {
		return s, frames, false
	}
	s.pid, s.tid = le.Uint32(b[8:]), le.Uint32(b[12:])
	s.cpu, s.period = le.Uint32(b[24:]), le.Uint64(b[32:])
	n := le.Uint64(b[40:])
	b = b[48:]
	if n > uint64(len(b)/8) {
		return s, frames, false
	}
	start := len(frames)
	kernelEnd := start
	for mode := uint64(0); n > 0; n-- {
		ip := le.Uint64(b)
		b = b[8:]
		switch {
		case ip >= contextMax:
			mode = ip
		case mode == contextKernel:
			frames = append(frames, ip)
			kernelEnd = len(frames)
		case mode == contextUser:
			frames = append(frames, ip)
		}
	}
	s.kernel, s.user = frames[start:kernelEnd:kernelEnd], frames[kernelEnd:]
	if !copied {
		return s, frames, true
	}
	if len(b) < 8 {
		return s, frames, false
	}
	s.abi = le.Uint64(b)
	b = b[8:]
	if s.abi != unix.PERF_SAMPLE_REGS_ABI_NONE {
		if len(b) < 8*len(perfRegs) {
			return s, frames, false
		}
		s.regs = decodeRegs(b)
		b = b[8*len(perfRegs):]
	}
	if len(b) < 8 {
		return s, frames, false
	}
	size := le.Uint64(b)
	b = b[8:]
	if size == 0 {
		return s, frames, true
	}
	if size > uint64(len(b)) || uint64(len(b))-size < 8 {
		return s, frames, false
	}
	filled := le.Uint64(b[size:]) // of the size, how much there was to copy
	s.stack = stackCopy{s.regs.R[dwarfSP], b[:min(filled, size)]}
	return s, frames, true
}

// mmapRecord is PERF_RECORD_MMAP2 without what is not used.
type mmapRecord struct {
	pid             uint32
	start, end, off uint64
	major, minor    uint32
	inode           uint64
	path            string
}

func decodeMmap(b []byte) (m mmapRecord, ok bool) {
	const fixed = 8 + 3*8 + 8 + 16 + 8
	if len(b) < fixed+idSize {
		return m, false
	}
	m = mmapRecord{pid: le.Uint32(b), start: le.Uint64(b[8:]), off: le.Uint64(b[24:]),
		major: le.Uint32(b[32:]), minor: le.Uint32(b[36:]), inode: le.Uint64(b[40:])}
	m.end = m.start + le.Uint64(b[16:])
	name, _, _ := bytes.Cut(b[fixed:len(b)-idSize], []byte{0})
	m.path = string(name)
	return m, m.end > m.start
}
