package stub

import (
	"bytes"
	"strings"
	"testing"
)

// TestStubBehindAddressSanitizersLabel: gcc's -fsanitize=address puts a label of its own in front of a function's unwind
// information. It is no place that code jumps to; a stub right behind it would have no unwind information.
func TestStubBehindAddressSanitizersLabel(t *testing.T) {
	for arch, ret := range map[string]string{
		"amd64": "ret\t# 20\t[c=0 l=1]  simple_return_internal", "arm64": "ret\t// 20\t[c=0 l=4]  *do_return",
		"arm": "bx\tlr\t@ 20\t[c=8 l=4]  *arm_return",
	} {
		asm := "\t.text\n\t.type\tf, %function\nf:\n.LASANPC0:\n.LFB0:\n\t.cfi_startproc\n\t" + ret + "\n\t.cfi_endproc\n\t.size\tf, .-f\n"
		var b bytes.Buffer
		r, err := Insert(&b, []byte(asm), Options{Arch: arch})
		if err != nil || r.Entries != 1 {
			t.Errorf("%s: %+v %v", arch, r, err)
			continue
		}
		front, _, ok := strings.Cut(b.String(), ".cfi_startproc")
		if _, front, _ = strings.Cut(front, "f:"); !ok || strings.Contains(front, "__braid_tls") {
			t.Errorf("%s: a stub stands in front of the unwind information:\n%s", arch, b.String())
		}
	}
}
