package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"braid/internal/kevent"
)

// What waitcalls.h has besides enum wait_call.
const (
	callFutex        = 64
	callFutexWake    = 65
	callFutexRequeue = 66
)

// callFamilies are the calls of each family, as Linux names them in any of its ABIs.
var callFamilies = map[byte]string{
	callFutex:                   "futex futex_time64",
	callFutexWake:               "futex_wake",
	callFutexRequeue:            "futex_requeue",
	byte(kevent.WaitFutexWait):  "futex_wait",
	byte(kevent.WaitFutexWaitv): "futex_waitv",
	byte(kevent.WaitEpollWait):  "epoll_wait epoll_pwait epoll_pwait2",
	byte(kevent.WaitPoll):       "poll ppoll ppoll_time64",
	byte(kevent.WaitSelect):     "select _newselect pselect6 pselect6_time64",
	byte(kevent.WaitRead):       "read pread64 readv preadv preadv2",
	byte(kevent.WaitWrite):      "write pwrite64 writev pwritev pwritev2",
	byte(kevent.WaitAccept):     "accept accept4",
	byte(kevent.WaitConnect):    "connect",
	byte(kevent.WaitRecv):       "recv recvfrom recvmsg recvmmsg recvmmsg_time64",
	byte(kevent.WaitSend):       "send sendto sendmsg sendmmsg",
	byte(kevent.WaitNanosleep):  "nanosleep clock_nanosleep clock_nanosleep_time64",
	byte(kevent.WaitChild):      "wait4 waitid waitpid",
	byte(kevent.WaitIoctl):      "ioctl",
	byte(kevent.WaitFileLock):   "flock fcntl fcntl64",
	byte(kevent.WaitSignal):     "rt_sigtimedwait rt_sigtimedwait_time64 rt_sigsuspend sigsuspend pause",
	byte(kevent.WaitSync):       "fsync fdatasync sync syncfs msync sync_file_range sync_file_range2 arm_sync_file_range",
	byte(kevent.WaitSplice):     "sendfile sendfile64 splice tee vmsplice copy_file_range",
	byte(kevent.WaitAIO):        "io_getevents io_pgetevents io_pgetevents_time64 io_submit io_uring_enter",
	byte(kevent.WaitIPC):        "semop semtimedop semtimedop_time64 msgsnd msgrcv mq_timedsend mq_timedreceive mq_timedsend_time64 mq_timedreceive_time64",
	byte(kevent.WaitOpen):       "open openat openat2 creat",
	byte(kevent.WaitMemory):     "mmap mmap2 munmap mremap mprotect madvise brk",
}

var callNumber = regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s*=\s*(\d+)`)

// callNumbers are an ABI's numbers by name, from golang.org/x/sys.
func callNumbers(t *testing.T, arch string) map[string]int {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	for _, m := range callNumber.FindAllStringSubmatch(string(text), -1) {
		numbers[strings.ToLower(m[1])], _ = strconv.Atoi(m[2])
	}
	return numbers
}

// callTables reads the tables of waitcalls.h, by the processor that they are for.
func callTables(t *testing.T) map[string][]map[int]string {
	t.Helper()
	text, err := os.ReadFile("waitcalls.h")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]map[int]string{}
	arch := ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, "__TARGET_ARCH_x86"):
			arch = "amd64"
		case strings.Contains(line, "__TARGET_ARCH_arm64"):
			arch = "arm64"
		case strings.HasPrefix(line, "const volatile"):
			tables[arch] = append(tables[arch], map[int]string{})
		}
		for _, m := range regexp.MustCompile(`\[(\d+)\] = (\w+)`).FindAllStringSubmatch(line, -1) {
			nr, _ := strconv.Atoi(m[1])
			all := tables[arch]
			all[len(all)-1][nr] = m[2]
		}
	}
	return tables
}

// TestCallTables compares the tables of system calls with the numbers that golang.org/x/sys has, of all four ABIs.
func TestCallTables(t *testing.T) {
	names := map[string]byte{"FUTEX": callFutex, "FUTEX_WAKE_CALL": callFutexWake, "FUTEX_REQUEUE_CALL": callFutexRequeue}
	for c := range callFamilies {
		if c < callFutex {
			names["WAIT_"+strings.ToUpper(kevent.WaitCall(c).String())] = c
		}
	}
	tables := callTables(t)
	for arch, abis := range map[string][]string{"amd64": {"amd64", "386"}, "arm64": {"arm64", "arm"}} {
		if len(tables[arch]) != 2 {
			t.Fatalf("%d tables for %s", len(tables[arch]), arch)
		}
		for i, abi := range abis {
			numbers, want := callNumbers(t, abi), map[int]string{}
			for name, family := range names {
				for _, call := range strings.Fields(callFamilies[family]) {
					if nr, ok := numbers[call]; ok {
						want[nr] = name
					}
				}
			}
			got := tables[arch][i]
			for nr, name := range want {
				if got[nr] != name {
					t.Errorf("%s: call %d is %s, the table says %q", abi, nr, name, got[nr])
				}
			}
			for nr, name := range got {
				if want[nr] == "" {
					t.Errorf("%s: the table says that %d is %s", abi, nr, name)
				}
			}
		}
	}
}

// TestCheckFormat checks that a tracepoint with other fields than binder.h expects is refused.
func TestCheckFormat(t *testing.T) {
	const format = `name: binder_transaction_received
ID: 1398
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:int debug_id;	offset:%d;	size:%d;	signed:1;

print fmt: "transaction=%%d", REC->debug_id
`
	want := recordFields["binder/binder_transaction_received"]
	if err := checkFormat(fmt.Appendf(nil, format, 8, 4), want); err != nil {
		t.Errorf("the kernel's own format: %v", err)
	}
	for _, at := range [][2]int{{12, 4}, {8, 8}} {
		if err := checkFormat(fmt.Appendf(nil, format, at[0], at[1]), want); err == nil || !strings.Contains(err.Error(), "debug_id 8 4") {
			t.Errorf("at %d with %d bytes: %v", at[0], at[1], err)
		}
	}
	if err := checkFormat(nil, want); err == nil {
		t.Error("an empty format is accepted")
	}
}
