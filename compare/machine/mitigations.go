package machine

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// mitigations sums up what the kernel does against attacks on the processor, as "ATTACK (WHAT IT DOES), ...". Source: the texts of
// arch/x86/kernel/cpu/bugs.c and arch/arm64/kernel/proton-pack.c, Linux 6.18. What only helps in part is called Vulnerable there.
func (s *System) mitigations() string {
	files, err := fs.Glob(s.Root, "sys/devices/system/cpu/vulnerabilities/*")
	if err != nil {
		return ""
	}
	var on []string
	for _, f := range files {
		how, does := strings.CutPrefix(s.text(f), "Mitigation: ")
		if !does {
			how, does = strings.CutPrefix(how, "Vulnerable: ")
		}
		if !does || strings.HasPrefix(how, "Clear CPU buffers attempted") {
			continue
		}
		how, _, _ = strings.Cut(how, ";") // behind it are other attacks, and what is off
		on = append(on, path.Base(f)+" ("+how+")")
	}
	slices.Sort(on)
	return strings.Join(on, ", ")
}

// toll are beginnings of what the kernel says of mitigations that it pays for at each entry, exit or return, and what they do.
var toll = []struct{ says, does string }{
	{"Safe RET", "each function in the kernel returns by a detour"},
	{"safe RET", "each function in the kernel returns by a detour"}, // until Linux 6.6
	{"untrained return thunk", "each entry untrains the branch predictor, and each function returns by a detour"},
	{"PTI", "each entry and exit changes page tables"},
	{"Clear CPU buffers", "each exit empties buffers of the processor"},
	{"IBRS", "each entry and exit writes a register that stops speculation"},
	{"Retpolines", "each indirect call in the kernel is a detour"},
}

// Toll says which of a machine's mitigations make entering and leaving the kernel dearer, "ATTACK (WHAT IT DOES): WHY" each. It reads the
// text of result.Machine's MitigationNote.
func Toll(note string) []string {
	var out []string
	for one := range strings.SplitSeq(note, "), ") {
		attack, how, _ := strings.Cut(strings.TrimSuffix(one, ")"), " (")
		for _, t := range toll {
			if strings.HasPrefix(how, t.says) {
				out = append(out, attack+" ("+how+"): "+t.does)
				break
			}
		}
	}
	return out
}
