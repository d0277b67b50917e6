package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where cgroups of version 2 are mounted, below which a watch file's paths are: /sys/fs/cgroup, or
// /sys/fs/cgroup/unified beside version 1. It is "" where there are none: the kernel then puts no process into a cgroup of
// version 2, and those of version 1 have ids that no program can compare.
func cgroupRoot() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return findCgroups(string(mounts))
}

// findCgroups looks through /proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5): id, parent, device, root, mount
// point, options, tags, "-", type.
func findCgroups(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if ok && len(fields) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			return strings.ReplaceAll(fields[4], `\040`, " ")
		}
	}
	return ""
}

// cgroupID is the id by which the kernel knows a cgroup of version 2: its folder's inode. 0: there is no such cgroup now.
func cgroupID(path string) uint64 {
	root := cgroupRoot()
	var st unix.Stat_t
	if root == "" || unix.Stat(filepath.Join(root, path), &st) != nil {
		return 0
	}
	return st.Ino
}

// checkCgroups says at the start what cannot be found by its cgroup.
func (d *Daemon) checkCgroups() {
	for _, p := range d.o.Config.Programs {
		switch {
		case p.Cgroup == "":
		case cgroupRoot() == "":
			d.log.Warn("no program is found by this cgroup: the machine has no cgroups of version 2", "cgroup", p.Cgroup,
				"do", "mount -t cgroup2 none /sys/fs/cgroup, or give the program's name or user (braid doctor: cgroup)")
		case cgroupID(p.Cgroup) == 0:
			d.log.Warn("there is no such cgroup yet: it is looked for once a second", "cgroup", p.Cgroup, "below", cgroupRoot())
		}
	}
}

// followCgroups tells the kernel side of cgroups that have come, or were made anew, since it was told last.
func (d *Daemon) followCgroups() {
	m := match(d.o.Config)
	if slices.Equal(m.Cgroups, d.cgroups) {
		return
	}
	d.cgroups = m.Cgroups
	if err := d.kernel.rec.SetMatch(m); err != nil {
		d.log.Error("cgroups", "err", err)
		return
	}
	d.scan() // for those that were in it before
}
