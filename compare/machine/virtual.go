package machine

import (
	"slices"
	"strings"
)

// virtual names the hypervisor, or "" if there is none that can be seen.
func (s *System) virtual(info string) string {
	if n := s.text("sys/hypervisor/type"); n != "" {
		return n
	}
	if n := strings.ToLower(s.text("proc/device-tree/hypervisor/compatible")); n != "" {
		return strings.TrimRight(strings.ReplaceAll(n, "\x00", " "), " ")
	}
	maker := strings.ToLower(s.text("sys/devices/virtual/dmi/id/sys_vendor") + " " + s.text("sys/devices/virtual/dmi/id/product_name"))
	for sign, n := range map[string]string{"qemu": "qemu", "kvm": "kvm", "vmware": "vmware", "virtualbox": "virtualbox", "innotek": "virtualbox",
		"xen": "xen", "amazon ec2": "amazon", "google compute": "google", "microsoft corporation virtual": "hyper-v", "parallels": "parallels",
		"apple virtualization": "apple", "bochs": "bochs"} {
		if strings.Contains(maker, sign) && !strings.Contains(maker, ".metal") {
			return n
		}
	}
	if strings.Contains(s.text("proc/device-tree/compatible"), "dummy-virt") {
		return "qemu" // the board that QEMU and its likes make up for arm64
	}
	if slices.Contains(strings.Fields(field(info, "flags")), "hypervisor") {
		if strings.Contains(s.text("sys/devices/system/clocksource/clocksource0/available_clocksource"), "kvm-clock") {
			return "kvm"
		}
		return "unknown hypervisor"
	}
	return ""
}

// ELF's numbers of machines, by Go's names.
var elfMachine = map[string]byte{"386": 3, "arm": 40, "amd64": 62, "arm64": 183}

// emulated says whether the processor is software, so that times mean nothing. There is no safe way to ask; these are traces
// that emulators leave.
func (s *System) emulated(info string) bool {
	arm := s.Arch == "arm64" || s.Arch == "arm"
	// An emulator of single programs (qemu-user) passes the files of the kernel on: they are of another processor.
	if a := s.text("proc/sys/kernel/arch"); a != "" { // since Linux 6.1
		if arm == strings.HasPrefix(a, "x86") {
			return true
		}
	}
	vendor := field(info, "vendor_id")
	if arm && vendor != "" && field(info, "CPU implementer") == "" {
		return true
	}
	if f, err := s.Root.Open("proc/1/exe"); err == nil { // as root
		head := make([]byte, 20)
		n, _ := f.Read(head)
		f.Close()
		if n == len(head) && string(head[:4]) == "\x7fELF" {
			init := head[18]
			if arm == (init == elfMachine["amd64"] || init == elfMachine["386"]) {
				return true
			}
		}
	}
	// A whole emulated machine: its made-up processor has no maker, its timer runs at QEMU's own rate, on x86 it says TCG.
	if arm && field(info, "CPU implementer") == "0x00" {
		return true
	}
	if s.CounterHz == 62_500_000 && strings.Contains(s.text("proc/device-tree/compatible"), "dummy-virt") {
		return true
	}
	if strings.Contains(field(info, "model name"), "TCG") || strings.HasPrefix(field(info, "model name"), "QEMU") && !kvmGuest(s) {
		return true
	}
	return false
}

// kvmGuest says whether KVM's own clock is offered: an emulated processor of QEMU has none.
func kvmGuest(s *System) bool {
	return strings.Contains(s.text("sys/devices/system/clocksource/clocksource0/available_clocksource"), "kvm-clock")
}
