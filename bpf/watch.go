package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoWatch says that a method needs Options.Watch.
var ErrNoWatch = errors.New("the kernel side was loaded without watching")

const (
	defaultWatched  = 256
	maxWatched      = 1 << 14
	threadsPerWatch = 64
	minThreads      = 8192
	nameBytes       = 15 // what the kernel keeps of a name, TASK_COMM_LEN without the NUL
)

// WatchOptions say what is watched. The zero value announces only children of processes that are added.
type WatchOptions struct {
	// Match says which processes are announced from the beginning; SetMatch changes it.
	Match Match
	// Processes is how many processes can have limits and histograms at the same time; 0 means 256. Each takes 2.6 KB
	// of kernel memory, and 7 KB for the states of its threads: there is room for 64 times as many threads, at least
	// 8192, and what finds none is counted as kernel_map_full_threads.
	Processes int
	// Adopt makes a process that matches a target by itself, at the moment at which it executes a program or renames
	// itself, so that nothing after that is missing. Processes then have no limits and no histograms: units load as for
	// recording alone. What the kernel can't tell apart (see Match) is for the caller to remove again.
	Adopt bool
}

// measures reports whether units are loaded with limits and histograms.
func (o *WatchOptions) measures() bool { return o != nil && !o.Adopt }

func (o *WatchOptions) adopts() bool { return o != nil && o.Adopt }

// Match says which processes are announced: those that have any of the names, or are in any of the cgroups, or belong
// to any of the users. The kernel sees to it, so that nothing leaves it of any other process. Kernel threads are never
// announced.
type Match struct {
	// Names are names of processes (/proc/PID/comm), or of executed files without their folder, links followed; a
	// name's last * stands for any rest. At most 32. The kernel keeps 15 bytes of a name: of a longer one that begins
	// the same way it cannot tell, and announces both.
	Names []string
	// Cgroups are ids of cgroups of the version 2 hierarchy, the inodes of their folders. Those within them, up to 8
	// levels down, count too. At most 32.
	Cgroups []uint64
	// Uids are effective user ids in the initial user namespace. At most 64.
	Uids []uint32
}

// check and sizes also take no options at all.
func (o *WatchOptions) check() error {
	if o == nil {
		return nil
	}
	if o.Processes < 0 || o.Processes > maxWatched {
		return fmt.Errorf("watch %d processes: choose at most %d", o.Processes, maxWatched)
	}
	_, err := o.Match.encode()
	return err
}

// sizes returns the max_entries of the maps that the options decide.
func (o *WatchOptions) sizes() map[string]uint32 {
	if o == nil {
		return nil
	}
	n := uint32(o.Processes)
	if n == 0 {
		n = defaultWatched
	}
	return map[string]uint32{"slots": n, "watched": n, "threads": max(n*threadsPerWatch, minThreads)}
}

// SetMatch changes which processes are announced from now on. Processes that run already are not looked at until they
// execute a program or change their name; a caller reads /proc after it. A process that was announced stays known until
// it ends or executes a program that does not match. At the moment of the change, single processes may be compared with
// a mixture of the old and the new.
func (r *Recorder) SetMatch(m Match) error {
	if r.watch == nil {
		return fmt.Errorf("change which processes are announced: %w", ErrNoWatch)
	}
	value, err := m.encode()
	if err != nil {
		return err
	}
	if err := r.maps["match"].Put(uint32(0), value); err != nil {
		return fmt.Errorf("change which processes are announced: %w", err)
	}
	return nil
}

// encode returns what the programs compare with: struct match of watch.bpf.c.
func (m Match) encode() (*watchMatch, error) {
	v := new(watchMatch)
	for _, list := range []struct {
		what      string
		len, most int
		count     *uint32
	}{
		{"names", len(m.Names), len(v.Name), &v.Names},
		{"cgroups", len(m.Cgroups), len(v.Cgroup), &v.Cgroups},
		{"users", len(m.Uids), len(v.Uid), &v.Uids},
	} {
		if list.len > list.most {
			return nil, fmt.Errorf("announce processes of %d %s: at most %d", list.len, list.what, list.most)
		}
		*list.count = uint32(list.len)
	}
	for i, name := range m.Names {
		prefix, open := strings.CutSuffix(name, "*")
		if prefix == "" || strings.ContainsAny(prefix, "/\x00") {
			return nil, fmt.Errorf("announce processes named %q: give a name without folder, or its beginning and a *", name)
		}
		var want, mask [16]byte
		n := copy(want[:nameBytes], prefix)
		if !open && len(prefix) <= nameBytes {
			n++ // the NUL
		}
		copy(mask[:n], slices.Repeat([]byte{0xff}, n))
		for w := range v.Name[i].Want.Word {
			v.Name[i].Want.Word[w] = binary.NativeEndian.Uint64(want[8*w:])
			v.Name[i].Mask.Word[w] = binary.NativeEndian.Uint64(mask[8*w:])
		}
	}
	copy(v.Cgroup[:], m.Cgroups)
	copy(v.Uid[:], m.Uids)
	return v, nil
}
