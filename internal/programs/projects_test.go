package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"braid/internal/timeline"
	"braid/internal/tracefile"
)

var projects = []project{
	{
		source: "bzip2", build: [][]string{sh(`make -s CC="$CC" bzip2 libbz2.a`)}, tests: sh(`make CC="$CC" test`),
		passed: "cmp sample3.tst sample3.ref", processes: 6, hot: []string{"BZ2_blockSort", "BZ2_decompress", "main"}, binary: "bzip2",
		compilers: traced,
	},
	{
		name: "speedtest1", source: "sqlite3",
		build: [][]string{{"./configure", "--quiet", "--disable-tcl"}, {"make", "-s", "sqlite3.c"},
			sh("$CC -O2 -I. -o speedtest1 test/speedtest1.c sqlite3.c -lpthread -ldl -lm")},
		tests: sh("./speedtest1 --size 5 --verify"), passed: "Verification Hash: ", varies: regexp.MustCompile(` +[0-9.]+s`), processes: 1,
		hot: []string{"sqlite3VdbeExec", "sqlite3_step", "main"}, binary: "speedtest1", ring: "512M", compilers: []compiler{gcc},
	},
	{
		source: "libjsoncpp",
		build:  [][]string{sh("$CXX -O2 -Iinclude -o jsontest src/lib_json/*.cpp src/test_lib_json/main.cpp src/test_lib_json/jsontest.cpp src/test_lib_json/fuzz.cpp")},
		tests:  sh("./jsontest"), passed: "All 119 tests passed", processes: 1,
		hot: []string{"Json::throwLogicError", "Json::Reader::readValue", "main"}, unwound: 80, binary: "jsontest", compilers: []compiler{gcc},
	},
	{
		name: "testfixture", source: "sqlite3",
		build:  [][]string{sh("./configure --quiet --with-tcl=$(dirname /usr/lib/*/tcl8.6/tclConfig.sh)"), {"make", "-s", "testfixture"}},
		tests:  sh("for t in select1 select2 join trans vacuum malloc4 fts3aa window1 json101 trigger1 savepoint; do ./testfixture test/$t.test; done"),
		passed: "0 errors out of", varies: regexp.MustCompile(`(?m)^(Time|Memory used|Maximum|Page-cache overflow|.*\d+ ms|.*seconds).*$`), processes: 11,
		hot: []string{"sqlite3VdbeExec", "sqlite3_step"}, binary: "testfixture", compilers: []compiler{gcc}, slow: true,
	},
	{
		source: "mawk", build: [][]string{{"./configure"}, {"make", "-s", "-j2"}}, tests: []string{"make", "-s", "check"},
		passed: "results consistent", processes: 40, hot: []string{"execute", "main"}, binary: "mawk", compilers: traced, slow: true,
	},
	{
		source: "jq",
		build: [][]string{sh("autoreconf -fi >/dev/null 2>&1"),
			{"./configure", "--quiet", "--disable-docs", "--disable-valgrind", "--disable-maintainer-mode", "--disable-shared"}, {"make", "-s", "-j2"}},
		tests: sh("make check || { cat test-suite.log; exit 1; }"), passed: "# PASS:  4", processes: 10,
		hot: []string{"jq_next", "jv_parse_sized", "main"}, binary: "jq", ring: "4M", compilers: traced, slow: true,
	},
	{
		source: "libzstd", build: [][]string{{"make", "-s", "-j2", "-C", "programs", "zstd"}, {"make", "-s", "-j2", "-C", "tests", "fuzzer", "zstreamtest"}},
		tests: sh("cd tests; ./fuzzer -s1 -i20 -t1; ./zstreamtest -s1 -i20 -t1"), passed: "fuzzer tests completed", processes: 2,
		varies: regexp.MustCompile(`(\r *\d+/ *\d+ *)+`), hot: []string{"ZSTD_compressStream2", "main"}, binary: "programs/zstd", ring: "512M",
		compilers: []compiler{gcc}, slow: true,
	},
	{
		source: "sed", build: [][]string{{"./configure", "--quiet", "--disable-nls"}, {"make", "-s", "-j2", "SUBDIRS=.", "MAKEINFO=true"}},
		// One of them runs sed under valgrind.
		tests:  sh("make check SUBDIRS=. MAKEINFO=true | grep '^[A-Z#]'"),
		passed: "# TOTAL:", processes: 100,
		hot: []string{"process_files", "match_regex", "main"}, binary: "sed/sed", ring: "1M", compilers: []compiler{gcc}, slow: true,
	},
	{
		source: "grep",
		// Unpacking leaves what is generated older than what it is generated from.
		build: [][]string{sh("touch aclocal.m4; find . -name Makefile.in -o -name configure -o -name config.hin -o -name 'iconv_open-*.h' | xargs touch"),
			{"./configure", "--quiet", "--disable-nls"}, {"make", "-s", "-j2", "-C", "lib"}, {"make", "-s", "-j2", "-C", "src"}},
		tests: sh("make -C tests check | grep '^[A-Z#]'"), passed: "# TOTAL:", processes: 100,
		hot: []string{"grep", "EGexecute", "main"}, binary: "src/grep", ring: "1M", compilers: []compiler{gcc}, slow: true,
	},
	{
		// A part of its make minitest: without extensions, and tests that need none of Unicode's tables.
		source: "perl", build: [][]string{sh(`./Configure -des -Dcc="$CC" -Doptimize=-O2`), sh("make -s -j2 miniperl lib/Config.pm; ln -sf ../miniperl t/perl")},
		tests: []string{"bash", "-ec", `cd t; ./perl TEST base/*.t comp/*.t cmd/*.t opbasic/*.t re/subst.t op/die*.t \
			op/{alarm,array,caller,closure,eval,exec,fork,goto,hash,kill0,local,loopctl,method,pack,sort,sprintf,sub,tie,wantarray,warn}.t </dev/null`},
		passed:    "All tests successful.",
		varies:    regexp.MustCompile(`Elapsed: \d+ sec|u=.* cs=[0-9.]+`),
		processes: 500, hot: []string{"Perl_runops_standard", "Perl_die_unwind", "main"}, unwound: 3000, binary: "miniperl", ring: "4M", compilers: []compiler{gcc}, slow: true,
	},
	{
		source: "re2", build: [][]string{{"make", "-s", "REBUILD_TABLES=1", "obj/libre2.a"}, {"make", "-s", "-j2", "REBUILD_TABLES=1", "static-test"}},
		tests: sh("make -s REBUILD_TABLES=1 static-test"), passed: "ALL TESTS PASSED", processes: 14,
		hot: []string{"re2::RE2::Init", "main"}, binary: "obj/test/re2_test", compilers: traced, slow: true,
	},
	{
		source: "leveldb", build: [][]string{{"mkdir", "out"}, sh("cd out; cmake -DCMAKE_BUILD_TYPE=Release -DLEVELDB_BUILD_BENCHMARKS=OFF .. >/dev/null; make -s -j2")},
		// HiddenValuesAreRemoved fails without stubs, on a busy machine two times in five.
		tests: sh("cd out; GTEST_FILTER=-DBTest.HiddenValuesAreRemoved ctest"), passed: "100% tests passed", varies: regexp.MustCompile(` *[0-9.]+ *sec`), processes: 20,
		hot: []string{"leveldb::DBImpl::Write", "main"}, binary: "out/leveldbutil",
		compilers: []compiler{gcc}, slow: true,
	},
	{
		source: "yaml-cpp", build: [][]string{{"mkdir", "out"}, sh("cd out; cmake -DCMAKE_BUILD_TYPE=Release -DYAML_CPP_BUILD_TESTS=ON .. >/dev/null; make -s -j2")},
		tests: sh("out/test/yaml-cpp-tests"), passed: "[  PASSED  ]", varies: regexp.MustCompile(`\([0-9]+ ms( total)?\)`), processes: 1,
		hot: []string{"main"}, binary: "out/test/yaml-cpp-tests", ring: "1G", compilers: []compiler{gcc}, slow: true,
	},
}

// threadsIn is how many threads have records in a trace.
func threadsIn(t *testing.T, file string) int {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return len(tr.Threads)
}

// dash builds Debian's shell and returns its path.
func dash(t *testing.T, cc compiler, flags string) string {
	t.Helper()
	dir := tree(t, "dash", cc.name+strings.ReplaceAll(flags, " ", ""), func(t testing.TB, dir string) {
		mustRun(t, dir, []string{"CC=" + cc.c, "CFLAGS=" + flags}, "./configure", "--quiet", "--disable-dependency-tracking")
		mustRun(t, dir, nil, "make", "-s", "-j2")
	})
	return filepath.Join(dir, "src/dash")
}

// TestShell: a shell, which forks in every way there is, does with stubs what it does without, recorded or not; and a
// script in which it forks not at all has callgrind's counts.
func TestShell(t *testing.T) {
	script, err := filepath.Abs("testdata/shell.sh")
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(filepath.Dir(script), "shell-alone.sh")
	if _, err := os.Stat("/bin/dash"); err != nil {
		t.Fatalf("%v: Debian's own is what the outcome is compared with", err)
	}
	want, wantAlone := run(t, t.TempDir(), nil, "/bin/dash", script), run(t, t.TempDir(), nil, "/bin/dash", alone)
	if want.code != 9 || lastOf(want.stdout) != "replaced" || wantAlone.code != 0 || lastOf(wantAlone.stdout) != "bye" {
		t.Fatalf("a script fails without stubs: %+v %+v", want, wantAlone)
	}
	withCompilers(t, func(t *testing.T, cc compiler) {
		bin := dash(t, cc, withoutTailCalls)
		if got := run(t, t.TempDir(), nil, bin, script); got != want {
			t.Errorf("not recorded: %+v, want %+v", got, want)
		}
		got, file := recorded(t, t.TempDir(), nil, nil, bin, script)
		if got != want {
			t.Errorf("recorded: %+v, want %+v", got, want)
		}
		if n := threadsIn(t, file); n < 40 {
			t.Errorf("records of %d processes", n)
		}
		o, _ := exact(t, t.TempDir(), nil, []*image{openImage(t, bin)}, 1, true, bin, alone)
		if o != wantAlone {
			t.Errorf("under callgrind: %+v, want %+v", o, wantAlone)
		}
	})
}
