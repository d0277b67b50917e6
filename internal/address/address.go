// Package address makes plain addresses of pointers: what a processor lets programs keep in a pointer's upper bits is no part
// of the address, and tools that compare or look up addresses must take it away.
//
// arm64 ignores bits 56 to 63 of a user's data address (top byte ignore), keeps a memory tag (MTE) in bits 56 to 59, and puts
// a signature (pointer authentication) into the bits between the largest address and bit 54, of user addresses also into
// bits 56 to 63 where they are not ignored. Bit 55 says whether the address is of the upper half, the kernel's. Read from
// Linux 6.12, Documentation/arch/arm64/tagged-pointers.rst, pointer-authentication.rst, and
// arch/arm64/include/asm/pointer_auth.h (ptrauth_user_pac_mask).
//
// amd64 may ignore bits 57 to 62 of a user's data address (linear address masking, LAM_U57; arch/x86/include/asm/uaccess_64.h
// and Documentation/arch/x86/x86_64 of the same version). Bit 63 says whether it is the kernel's.
package address

import (
	"math/bits"

	"golang.org/x/sys/unix"
)

// DefaultBits is how many bits a user address has at most where nobody has asked: what most distributions' kernels give
// programs. It is too many for Android's kernels of 4 KiB pages, which have 39: a signature begins at bit 39 there.
const DefaultBits = 48

const (
	upperHalf = 1 << 55 // arm64: TTBR1, the kernel's half
	lamBits   = 0x7e << 56
)

// Strip returns the plain address of a pointer to code or data. arch is a GOARCH; of another than arm64 and amd64 nothing is
// taken away. vaBits is how many bits an address has (39, 42, 47, 48 or 52 on arm64); 0: DefaultBits. It may be called twice:
// what is plain stays so. A signed pointer to above vaBits can not be told from a signature and is cut.
func Strip(arch string, vaBits int, addr uint64) uint64 {
	switch arch {
	case "arm64":
		if vaBits <= 0 || vaBits > 55 { // bit 55 is no part of an address
			vaBits = DefaultBits
		}
		low := uint64(1)<<vaBits - 1
		if addr&upperHalf != 0 {
			return addr | ^low
		}
		return addr & low
	case "amd64":
		if addr>>63 == 0 {
			return addr &^ lamBits
		}
	}
	return addr
}

// Untag returns the plain address of a pointer to data that is not signed, as system calls take it: without what the
// processor ignores in it. It needs not know how many bits an address has.
func Untag(arch string, addr uint64) uint64 { return Strip(arch, 55, addr) }

// Tag returns what arm64 ignores in a data pointer: the top byte, whose low half is the memory tag where MTE is in use. 0 on
// other processors, and for kernel addresses, whose top byte is all ones.
func Tag(arch string, addr uint64) uint8 {
	if arch != "arm64" || addr&upperHalf != 0 {
		return 0
	}
	return uint8(addr >> 56)
}

// Bits returns how many bits a user address of this machine has at most, for Strip: of the highest address that the kernel
// gives when it is asked to. Programs get addresses of more than 48 bits only if they ask (mmap with a hint above).
func Bits() int {
	for _, n := range []int{52, 48, 47, 42, 39} {
		hint := uintptr(1)<<n - 1<<30
		p, _, errno := unix.Syscall6(unix.SYS_MMAP, hint, 4096, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
		if errno != 0 {
			continue
		}
		unix.Syscall(unix.SYS_MUNMAP, p, 4096, 0)
		if got := bits.Len64(uint64(p)); got == n {
			return n
		}
	}
	return DefaultBits
}
