package cpus

import (
	"strconv"
	"strings"
)

// Field is the value of the first line "name : value" of a text such as /proc/cpuinfo; "" if there is none.
func Field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// models names processors by number: their names, or on Arm their maker's and part's numbers. info is /proc/cpuinfo.
func models(info string) map[int]string {
	names := make(map[int]string)
	for block := range strings.SplitSeq(info, "\n\n") {
		id, err := strconv.Atoi(Field(block, "processor"))
		if err != nil {
			continue
		}
		names[id] = Field(block, "model name")
		maker, part := Field(block, "CPU implementer"), Field(block, "CPU part")
		if names[id] != "" || maker == "" {
			continue
		}
		if names[id] = armParts[maker+" "+part]; names[id] == "" {
			names[id] = strings.TrimSpace("implementer " + maker + " part " + part)
		}
	}
	return names
}

// armParts names processors by MIDR_EL1's implementer and part number, from Linux' arch/arm64/include/asm/cputype.h.
var armParts = map[string]string{
	"0x41 0xd03": "Cortex-A53", "0x41 0xd04": "Cortex-A35", "0x41 0xd05": "Cortex-A55", "0x41 0xd07": "Cortex-A57",
	"0x41 0xd08": "Cortex-A72", "0x41 0xd09": "Cortex-A73", "0x41 0xd0a": "Cortex-A75", "0x41 0xd0b": "Cortex-A76",
	"0x41 0xd0c": "Neoverse-N1", "0x41 0xd0d": "Cortex-A77", "0x41 0xd40": "Neoverse-V1", "0x41 0xd41": "Cortex-A78",
	"0x41 0xd44": "Cortex-X1", "0x41 0xd46": "Cortex-A510", "0x41 0xd47": "Cortex-A710", "0x41 0xd48": "Cortex-X2",
	"0x41 0xd49": "Neoverse-N2", "0x41 0xd4d": "Cortex-A715", "0x41 0xd4e": "Cortex-X3", "0x41 0xd4f": "Neoverse-V2",
	"0x41 0xd80": "Cortex-A520", "0x41 0xd81": "Cortex-A720", "0x41 0xd82": "Cortex-X4", "0x41 0xd85": "Cortex-X925",
	"0x41 0xd87": "Cortex-A725",
}
