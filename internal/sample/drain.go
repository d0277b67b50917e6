package sample

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"braid/internal/tracefile"

	"golang.org/x/sys/unix"
)

// settle is for how long records may still come that are earlier than others, because another CPU's ring was read before, in ns.
const settle = 1_000_000

// drain reads all rings and hands out the samples in order of time. But for the last time, the newest records wait for
// those that other CPUs may not have written yet.
func (s *Sampler) drain(last bool, write func(*tracefile.Samples) error) error {
	if err := s.updateSkew(); err != nil {
		return err
	}
	until, err := s.now()
	if err != nil {
		return err
	}
	until -= settle
	if last {
		until = ^uint64(0)
	}
	s.spaces.drains++
	s.mu.Lock()
	rings := make([]*ring, 0, len(s.rings))
	for _, r := range s.rings {
		rings = append(rings, r)
	}
	s.mu.Unlock()
	slices.SortFunc(rings, func(a, b *ring) int { return cmp.Compare(a.cpu, b.cpu) })
	var list []record
	for _, b := range s.carried {
		list = records(list, b, -1)
	}
	s.carried = nil
	for _, r := range rings {
		list = records(list, r.read(nil), r.cpu)
	}
	slices.SortStableFunc(list, func(a, b record) int { return cmp.Compare(a.time, b.time) })

	out := tracefile.Samples{Event: s.kind.event, Stacks: s.o.Stacks, Kernel: s.kind.kernel, Frequency: uint64(s.o.Hz)}
	for i, r := range list {
		if r.time > until {
			s.carry(list[i:])
			break
		}
		s.handle(r, &out)
	}
	if len(out.Samples) == 0 {
		return nil
	}
	s.count.Add(uint64(len(out.Samples)))
	return write(&out)
}

// now reads the events' clock.
func (s *Sampler) now() (uint64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(s.kind.attr.Clockid, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(t.Nano()), nil
}

// carry keeps records for the next time.
func (s *Sampler) carry(list []record) {
	for _, r := range list {
		b := make([]byte, 0, 8+len(r.body))
		b = le.AppendUint32(b, r.typ)
		b = le.AppendUint16(b, r.misc)
		b = le.AppendUint16(b, uint16(8+len(r.body)))
		s.carried = append(s.carried, append(b, r.body...))
	}
}

// handle takes one record into account.
func (s *Sampler) handle(r record, out *tracefile.Samples) {
	time := r.time + s.skew
	switch r.typ {
	case unix.PERF_RECORD_SAMPLE:
		if t, ok := s.walk.sample(r, time); ok {
			out.Samples = append(out.Samples, t)
		} else {
			s.lost["samples_damaged"]++
		}
	case unix.PERF_RECORD_LOST: // id, lost
		s.lost["samples_lost"] += le.Uint64(r.body[8:])
	case unix.PERF_RECORD_LOST_SAMPLES: // lost
		s.lost["samples_lost"] += le.Uint64(r.body)
	case unix.PERF_RECORD_THROTTLE:
		s.lost["samples_throttled"]++
	case unix.PERF_RECORD_MMAP2:
		if m, ok := decodeMmap(r.body); ok {
			s.spaces.mapped(m, time)
		}
	case unix.PERF_RECORD_COMM: // pid, tid, name
		if r.misc&unix.PERF_RECORD_MISC_COMM_EXEC != 0 {
			pid := le.Uint32(r.body)
			s.spaces.all[pid] = &space{pid: pid, executing: true}
		}
	case unix.PERF_RECORD_FORK: // pid, ppid, tid, ptid
		if pid, parent := le.Uint32(r.body), le.Uint32(r.body[4:]); pid != parent {
			s.spaces.all[pid] = s.spaces.of(parent).fork(pid, time)
		}
	}
}

func procPath(pid uint32, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// unixOnline is the number of CPUs that this process may use.
func unixOnline() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return 1
	}
	return set.Count()
}
