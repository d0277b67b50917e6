package launcher

import (
	"runtime"
	"strings"
	"testing"
)

func TestTriple(t *testing.T) {
	for triple, want := range map[string]string{
		"":                              runtime.GOARCH,
		"x86_64-linux-gnu":              "amd64",
		"x86_64-pc-linux-musl":          "amd64",
		"x86_64-redhat-linux":           "amd64",
		"x86_64-linux-gnux32":           "",
		"x86_64-w64-mingw32":            "",
		"x86_64-elf":                    "",
		"x86_64":                        "", // clang takes that as bare metal
		"i686-linux-gnu":                "",
		"aarch64-linux-gnu":             "arm64",
		"arm64-unknown-linux-gnu":       "arm64",
		"aarch64-linux-android30":       "arm64",
		"aarch64-none-elf":              "",
		"aarch64-linux-gnu_ilp32":       "",
		"aarch64_be-linux-gnu":          "",
		"arm64_32-apple-watchos":        "",
		"arm-linux-gnueabihf":           "arm",
		"armv7a-linux-androideabi30":    "arm",
		"thumbv7-linux-gnueabi":         "arm",
		"arm-buildroot-linux-gnueabihf": "arm",
		"arm-none-eabi":                 "",
		"armeb-linux-gnueabi":           "",
		"riscv64-linux-gnu":             "",
	} {
		got, why := tripleArch(triple)
		if got != want || (why == "") != (want != "") {
			t.Errorf("%s: %q (%s), want %q", triple, got, why, want)
		}
	}
}

// TestProcessor: what the compilers' names and arguments say, and for 32-bit ARM what the compilers do.
func TestProcessor(t *testing.T) {
	for command, want := range map[string]string{
		"gcc -c a.c":                                                                runtime.GOARCH,
		"x86_64-linux-gnu-gcc -c a.c":                                               "amd64",
		"aarch64-linux-gnu-gcc -c a.c":                                              "arm64",
		"aarch64-linux-gnu-g++ -c a.cc":                                             "arm64",
		"aarch64-linux-gnu-gcc -mabi=ilp32 -c a.c":                                  "",
		"clang --target=aarch64-linux-gnu -c a.c":                                   "arm64",
		"clang-19 -target aarch64-linux-android30 -c a.c":                           "arm64",
		"clang --target=aarch64-none-elf -c a.c":                                    "",
		"arm-linux-gnueabihf-gcc -c a.c":                                            "arm",
		"arm-linux-gnueabihf-gcc -marm -c a.c":                                      "arm",
		"arm-linux-gnueabihf-g++ -mthumb -march=armv8-a+simd -c a.c":                "arm",
		"arm-linux-gnueabihf-gcc -mcpu=cortex-a7 -c a.c":                            "arm",
		"arm-linux-gnueabihf-gcc -march=armv6+fp -marm -c a.c":                      "",
		"arm-linux-gnueabihf-gcc -march=armv5te -marm -mfloat-abi=soft -c a.c":      "",
		"arm-linux-gnueabihf-gcc -mcpu=cortex-m4 -mthumb -c a.c":                    "",
		"arm-linux-gnueabihf-gcc -mbig-endian -c a.c":                               "",
		"arm-linux-gnueabihf-gcc -march=nonsense -c a.c":                            "",
		"clang --target=armv7a-linux-androideabi30 -c a.c":                          "arm",
		"clang-19 --target=arm-linux-gnueabihf -c a.c":                              "arm",
		"clang-19 --target=arm-linux-gnueabihf -march=armv6 -c a.c":                 "",
		"clang-19 --target=arm-linux-gnueabihf -mcpu=cortex-m3 -c a.c":              "",
		"clang-19 --target=thumbv7-linux-gnueabi -mthumb -c a.c":                    "arm",
		"clang-19 --target=armv7a-linux-gnueabihf -c a.c -mllvm -some-arm-option=1": "arm",
	} {
		c, args := identify(strings.Fields(command))
		cl, ok := parseCommandLine(args, &c)
		if !ok {
			t.Errorf("%s: not understood", command)
		}
		if got, why := c.processor(&cl); got != want || (why == "") != (want != "") {
			t.Errorf("%s: %q (%s), want %q", command, got, why, want)
		}
	}
}

func TestParseBlock(t *testing.T) {
	for kind, want := range map[string]string{
		"tls": "", "slot:2": "slot:2", "slot:0": "slot:0", "reg:x19": "reg:x19+0", "reg:r9+8": "reg:r9+8",
		"reg:x19+0x4d0": "reg:x19+1232", "slot:": "!", "slot:-1": "!", "slot:512": "!", "slot:99999999999999999999": "!",
		"reg:": "!", "reg:x19+": "!", "reg:x19+3": "!", "reg:x19+4096": "!", "reg:X19": "!", "reg:x19-8": "!",
		"": "!", "register": "!", "tls:0": "!",
	} {
		got, err := parseBlock(kind)
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: %q (%v), want %q", kind, got, err, want)
		}
	}
}
