package main

import "regexp"

// run is one test binary in one way: its package, and what is different from running its tests natively.
type run struct {
	name string
	pkg  string // below the module's root
	// env is set in a guest, whose folder /test holds what build made.
	env []string
	// ownTime has the guest's clock count instructions, so that this machine's load does not show in what is measured there.
	// Such runs have a boot of their own: that clock skips what a processor idles, and short sleeps with it.
	ownTime bool
	// guest says that there is nothing to run natively. Such tests may have a build tag.
	guest bool
}

// In each guest, the last one takes things from the kernel that it cannot have back.
var runs = []run{
	{name: "bpf", pkg: "bpf", env: []string{"BRAID_TEST_TARGET=/test/arm64/target", "BRAID_TEST_PROBES=/test/probes", "BRAID_TEST_STRICT=1"}},
	{name: "bpf-arm", pkg: "bpf", guest: true, env: []string{"BRAID_TEST_TARGET=/test/arm/target", "BRAID_TEST_STRICT=1", "TMPDIR=/disk"}},
	{name: "bpf-disk", pkg: "bpf", env: []string{"BRAID_TEST_TARGET=/test/arm64/target", "BRAID_TEST_STRICT=1", "TMPDIR=/disk"}},
	{name: "binder", pkg: "bpf", guest: true, ownTime: true, env: []string{"BRAID_TEST_TARGET=/test/arm64/target", "BRAID_TEST_BINDER=/test/arm64/binder"}},
	{name: "sample", pkg: "internal/sample", env: []string{"BRAID_TEST_SAMPLE=/test/arm64"}},
	{name: "braid", pkg: "cmd/braid", env: []string{"BRAID_TEST_BIN=/test/braid-arm64", "BRAID_TEST_PERFETTO=/tmp/perfetto"}},
	{name: "braid-arm", pkg: "cmd/braid", guest: true,
		env: []string{"BRAID_TEST_BIN=/test/braid-arm", "BRAID_TEST_PERFETTO=/tmp/perfetto"}},
	{name: "braid-binder", pkg: "cmd/braid", guest: true, env: []string{"BRAID_TEST_BIN=/test/braid-arm64"}},
	{name: "locked", pkg: "cmd/braid", guest: true, env: []string{"BRAID_TEST_BIN=/test/braid-arm64"}},
}

// tags are the build tags of tests that only guests can run.
const tags = "guest,binder"

// modules are what a guest's kernel loads: binder, a disk and its file system.
var modules = []string{"binder_linux devices=binder", "loop", "ext4"}

// prepare is what a guest's shell does first. Its little memory would else be written back before a test asks, and the kernel
// would allow fewer samples because an emulated processor takes long for each. A 32-bit program is recorded by a 64-bit braid.
const prepare = `mkdir -p /tmp/perfetto /test/tmp /disk
ln -s ../braid-arm64/braid /test/braid-arm/braid
export TMPDIR=/test/tmp
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
echo 80 >/proc/sys/vm/dirty_ratio; echo 70 >/proc/sys/vm/dirty_background_ratio; echo 0 >/proc/sys/vm/dirty_writeback_centisecs
zcat /test/disk.gz >/tmp/disk && mount -t ext4 -o loop /tmp/disk /disk && echo 90 >/sys/class/bdi/7:0/min_ratio || echo no disk
`

// feature is a row of the table: it works where all of its tests pass.
type feature struct {
	name  string
	run   string
	tests []string
	// quick is how many of the tests, from the first, CI tries in each guest.
	quick int
}

var features = []feature{
	{"methods recorded, with thread states", "braid", []string{"TestFork", "TestExec"}, 1},
	{"attaching to a running program", "braid", []string{"TestFor", "TestAttachEnds"}, 1},
	{"200 threads", "braid", []string{"TestManyThreads"}, 0},
	{"crashes, kills", "braid", []string{"TestCrash", "TestKilledByItself", "TestRecorderKilled"}, 1},
	{"report, dump", "braid", []string{"TestReportWidth", "TestDumpSections"}, 1},
	{"doctor", "braid", []string{"TestDoctor"}, 1},
	{"compare", "braid", []string{"TestCompare", "TestCompareNotRoot"}, 0},
	{"watch: start, flush, status, stop", "braid", []string{"TestWatchTurn", "TestWatchFlush"}, 1},
	{"watch: a crash triggers", "braid", []string{"TestWatchCrash"}, 1},
	{"watch: slow methods, from rings and by probes", "braid", []string{"TestWatchMethod"}, 0},
	{"watch: by cgroup, version 2 and none", "braid", []string{"TestWatchCgroup"}, 0},
	{"32-bit programs: methods, states, attaching", "braid-arm", []string{"TestFork", "TestFor", "TestExec"}, 1},
	{"32-bit programs: waits, fsync, requests", "bpf-arm", []string{"TestSleeps", "TestWriteAndFsync"}, 1},
	{"unit sched: switches and wake-ups, as ftrace has them", "bpf", []string{"TestSleeps", "TestFutex"}, 2},
	{"unit sched: idle processors", "bpf", []string{"TestIdleOfBigger", "TestIdleAgreesWithFtrace"}, 0},
	{"unit io: requests, fsync, reads", "bpf-disk", []string{"TestWriteAndFsync", "TestDirectReads"}, 0},
	{"unit io: major faults", "bpf-disk", []string{"TestMajorFaults"}, 0},
	{"unit wait: what threads sleep in", "bpf", []string{"TestWaits"}, 1},
	{"unit wait: binder", "binder", []string{"TestBinderClient", "TestBinderServer"}, 0},
	{"locks and pipes in reports", "braid", []string{"TestWaits"}, 1},
	{"binder calls in reports", "braid-binder", []string{"TestBinder"}, 0},
	{"samples, by tables and frame pointers", "sample", []string{"TestChainsByTablesOrPointers", "TestChainsByPointers"}, 1},
	{"forks, execs, exits", "bpf", []string{"TestSpawn", "TestForeigners", "TestAdopt"}, 2},
	{"apps that zygote starts, daemons", "braid", []string{"TestPackageFromItsStart", "TestPackageFollowsDaemon"}, 0},
	{"processes announced", "bpf", []string{"TestAnnounce", "TestAnnounceRename", "TestAnnounceSignal", "TestAnnounceByOwner"}, 0},
	{"limits and histograms", "bpf-disk", []string{"TestLimitsAndHistograms"}, 0},
	{"probes at methods", "bpf", []string{"TestProbe", "TestProbeTwo"}, 0},
	{"losses counted", "bpf", []string{"TestRingFull"}, 0},
	{"nothing left in the kernel", "bpf", []string{"TestNothingLeftAfterClose", "TestNothingLeftAfterKill"}, 2},
	{"without the ring buffer", "bpf", []string{"TestWithoutRingBuffer", "TestPerfBuffersFull"}, 1},
	{"without tp_btf, types from a file, minimal ones", "bpf", []string{"TestMinimizeBTF", "TestWithoutTpBTF", "TestRawTracepoints"}, 2},
	{"without BTF", "braid", []string{"TestWithout"}, 1},
	{"without bpf, perf, privileges, tracefs, in a pid namespace", "braid", []string{"TestConfined"}, 0},
	{"without root", "braid", []string{"TestWithoutRoot"}, 1},
	{"with CAP_BPF and CAP_PERFMON alone", "braid", []string{"TestCapabilities"}, 1},
	{"perf_event_paranoid", "locked", []string{"TestParanoid"}, 1},
	{"lockdown", "locked", []string{"TestLockdown"}, 0},
}

// choice is what is tried.
type choice struct {
	quick bool
	only  *regexp.Regexp // of features' names
}

// features returns those that are tried, with their tests.
func (c choice) features() (list []feature) {
	for _, f := range features {
		if c.quick {
			f.tests = f.tests[:f.quick]
		}
		if len(f.tests) > 0 && c.only.MatchString(f.name) {
			list = append(list, f)
		}
	}
	return list
}
