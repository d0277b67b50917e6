package bpf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	const none, locked = "[none] integrity confidentiality", "none integrity [confidentiality]"
	for _, c := range []struct {
		lockdown   string
		err        error
		permission bool
		says       string
	}{
		{none, unix.EINVAL, false, "load: invalid argument"},
		{none, unix.EPERM, true, "seccomp denials"},
		{"", unix.EACCES, true, "seccomp denials"},
		{locked, unix.EPERM, true, "locked down (confidentiality)"},
		{locked, unix.EINVAL, true, "locked down (confidentiality)"},
		{locked, unix.ENOENT, false, "load: no such file"},
	} {
		err := explainUnder(c.lockdown, fmt.Errorf("load: %w", c.err))
		if errors.Is(err, ErrPermission) != c.permission || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %v: %v", c.lockdown, c.err, err)
		}
	}
}
