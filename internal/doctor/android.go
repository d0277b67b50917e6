package doctor

import "strings"

// binder says whether calls between Android's processes can be seen.
func binder(s *System) Check {
	lost := "calls between processes (unit wait): threads in them only show as sleeping"
	devices, err := s.text("/proc/filesystems")
	if err != nil {
		return unknown(err, lost)
	}
	driver := ""
	for _, path := range []string{"/dev/binderfs/binder", "/dev/binder", "/sys/module/binder_linux"} {
		if s.exists(path) {
			driver = path
			break
		}
	}
	switch {
	case driver == "" && strings.Contains(devices, "binder"):
		driver = "the kernel has it"
	case driver == "" && s.exists("/system/build.prop"):
		return Check{Status: Warn, Found: "there is no binder, though this is Android", Lost: lost, Do: "look for why: ls /dev/binder* /dev/binderfs"}
	case driver == "":
		return Check{Status: OK, Found: "none, as is usual outside of Android"}
	}
	dir, err := s.tracing()
	if err != nil {
		return Check{Status: Unknown, Found: driver + "; its tracepoints can not be looked for, as tracefs is not there", Lost: lost,
			Do: "mount -t tracefs tracefs /sys/kernel/tracing (as root)"}
	}
	var missing []string
	for _, event := range []string{"binder_transaction", "binder_transaction_received", "binder_wait_for_work"} {
		if !s.exists(dir + "/events/binder/" + event) {
			missing = append(missing, event)
		}
	}
	if len(missing) > 0 {
		return Check{Status: Warn, Found: driver + "; no tracepoint " + strings.Join(missing, ", "), Lost: lost, Do: "use a kernel whose binder has them"}
	}
	return Check{Status: OK, Found: driver + ", with its tracepoints"}
}

// cgroups says whether processes can be told apart by version 2 cgroups.
func cgroups(s *System) Check {
	lost := "choosing processes by cgroup in watch files"
	mounts, err := s.text("/proc/mounts")
	if err != nil {
		return unknown(err, lost)
	}
	two, one := "", false
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line) // device, folder, type
		switch {
		case len(f) < 3:
		case f[2] == "cgroup2" && two == "":
			two = f[1]
		case f[2] == "cgroup":
			one = true
		}
	}
	switch {
	case two != "" && one:
		return Check{Status: OK, Found: "version 2 at " + two + ", beside version 1, whose groups braid does not see"}
	case two != "":
		return Check{Status: OK, Found: "version 2 at " + two}
	case one:
		return Check{Status: Warn, Found: "version 1 only", Lost: lost,
			Do: "choose by name or user; or mount version 2: mount -t cgroup2 cgroup2 FOLDER, or boot with systemd.unified_cgroup_hierarchy=1"}
	}
	return Check{Status: Warn, Found: "none is mounted", Lost: lost, Do: "choose by name or user; or mount -t cgroup2 cgroup2 /sys/fs/cgroup (as root)"}
}
