package watch

import "testing"

func TestFindCgroups(t *testing.T) {
	const v1 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu\n"
	for _, c := range []struct{ mounts, want string }{
		{"", ""},
		{v1, ""},
		{v1 + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified"},
		{"29 22 0:25 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n", "/sys/fs/cgroup"},
		{"29 22 0:25 / /a\\040b rw - cgroup2 none rw\n", "/a b"},
		{"cut - cgroup2 none", ""},
	} {
		if got := findCgroups(c.mounts); got != c.want {
			t.Errorf("%q: %q, want %q", c.mounts, got, c.want)
		}
	}
}
