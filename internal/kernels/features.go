package main

// run is one test binary in one way: its package, and what is different from running its tests natively.
type run struct {
	name string
	pkg  string // below the module's root
	// env is set in a guest, whose folder /test holds what build made.
	env []string
	// guest says that there is nothing to run natively.
	guest bool
}

var runs = []run{
	{name: "bpf", pkg: "bpf", env: []string{"BRAID_TEST_TARGET=/test/arm64/target", "BRAID_TEST_PROBES=/test/probes", "BRAID_TEST_STRICT=1"}},
	{name: "braid", pkg: "cmd/braid", env: []string{"BRAID_TEST_BIN=/test/braid-arm64", "BRAID_TEST_PERFETTO=/tmp/perfetto"}},
	{name: "braid-arm", pkg: "cmd/braid", guest: true,
		env: []string{"BRAID_TEST_BIN=/test/braid-arm", "BRAID_TEST_PERFETTO=/tmp/perfetto"}},
}

// feature is a row of the table: it works where all of its tests pass.
type feature struct {
	name  string
	run   string
	tests []string
	// quick is how many of the tests, from the first, CI tries in each guest.
	quick int
}

var features = []feature{
	{"methods recorded, with thread states", "braid", []string{"TestFork", "TestExitCodes", "TestExec"}, 1},
	{"attaching to a running program", "braid", []string{"TestFor", "TestAttach"}, 1},
	{"200 threads", "braid", []string{"TestManyThreads"}, 0},
	{"crashes, kills", "braid", []string{"TestCrash", "TestKilledByItself", "TestRecorderKilled"}, 0},
	{"report, dump", "braid", []string{"TestReportWidth", "TestDumpSections"}, 0},
	{"methods without root", "braid", []string{"TestWithoutRoot"}, 1},
	{"doctor", "braid", []string{"TestDoctor"}, 1},
	{"watch: start, flush, status, stop", "braid", []string{"TestWatchFlush", "TestWatchTurn"}, 1},
	{"watch: a crash triggers", "braid", []string{"TestWatchCrash"}, 0},
	{"watch: slow methods, from rings and by probes", "braid", []string{"TestWatchMethod"}, 0},
	{"watch: as a user", "braid", []string{"TestWatchAsUser"}, 0},
	{"32-bit programs", "braid-arm", []string{"TestFork", "TestExitCodes", "TestFor"}, 1},
	{"switches and wake-ups, as ftrace has them", "bpf", []string{"TestSleeps", "TestFutex"}, 2},
	{"forks, execs, exits", "bpf", []string{"TestSpawn", "TestForeigners"}, 2},
	{"raw tracepoints, types from a file", "bpf", []string{"TestRawTracepoints"}, 1},
	{"losses counted", "bpf", []string{"TestRingFull"}, 0},
	{"nothing left in the kernel", "bpf", []string{"TestNothingLeftAfterClose", "TestNothingLeftAfterKill"}, 2},
	{"a clear word without capabilities", "bpf", []string{"TestNotRoot"}, 1},
	{"processes announced", "bpf", []string{"TestAnnounce", "TestAnnounceRename", "TestAnnounceSignal"}, 0},
	{"limits and histograms", "bpf", []string{"TestLimitsAndHistograms"}, 0},
	{"probes at methods", "bpf", []string{"TestProbe", "TestProbeTwo"}, 0},
}

// chosen returns the features that are tried, with their tests.
func chosen(quick bool) (list []feature) {
	for _, f := range features {
		if quick {
			f.tests = f.tests[:f.quick]
		}
		if len(f.tests) > 0 {
			list = append(list, f)
		}
	}
	return list
}
