# make test does all of its own set-up on a fresh Debian machine: as root it installs what is missing.

GO ?= go
export CGO_ENABLED = 0

# Each word: a command or file that shows that the package is there, and the package; or a package that dpkg is asked for.
NEEDS = gcc:gcc g++:g++ make:make clang:clang clang-19:clang-19 llvm-strip-19:llvm-19 ld:binutils musl-gcc:musl-tools \
	valgrind:valgrind perf:linux-perf bpftrace:bpftrace bpftool:bpftool \
	ccache:ccache dpkg-source:dpkg-dev libtool:libtool-bin autoreconf:autoconf \
	node:nodejs npm:npm /usr/include/bpf/bpf_helpers.h:libbpf-dev \
	/usr/include/readline/readline.h:libreadline-dev tclsh:tcl \
	aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu aarch64-linux-gnu-g++:g++-aarch64-linux-gnu \
	arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf arm-linux-gnueabihf-g++:g++-arm-linux-gnueabihf \
	qemu-aarch64:qemu-user gdb:gdb llvm-mca-19:llvm-19 ld.lld-19:lld-19 libclang-rt-14-dev libclang-rt-19-dev \
	cmake:cmake meson:meson ninja:ninja-build automake:automake libtoolize:libtool \
	gfortran:gfortran gnatmake:gnat gobjc \
	mkfs.ext4:e2fsprogs spin:spin /usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz:gcc-12-source xz:xz-utils csmith:csmith /usr/include/csmith/csmith.h:libcsmith-dev \
	promtool:prometheus sqlite3:sqlite3 chromium:chromium uftrace:uftrace lttng:lttng-tools babeltrace2:babeltrace2 liblttng-ust-dev javac:default-jdk-headless

# What the slow programs of internal/programs need besides.
PROGRAM_NEEDS = /usr/include/tcl8.6/tcl.h:tcl-dev /usr/include/oniguruma.h:libonig-dev \
	flex:flex bison:bison /usr/src/googletest/CMakeLists.txt:libgtest-dev /usr/include/gmock/gmock.h:libgmock-dev \
	/usr/include/benchmark/benchmark.h:libbenchmark-dev /usr/share/unicode/UnicodeData.txt:unicode-data

.PHONY: all test test-programs test-torture soak test-guests test-kernels bench setup generate lint clean release

all:
	$(GO) build -o bin/braid ./cmd/braid

# Installs what tests and generators need, if anything is missing.
setup:
	@./scripts/setup $(NEEDS)

# Packages whose tests need processors and no quiet: compilers, programs, models, simulated processors.
BUSY = braid/inline/... braid/control/model braid/symbols braid/internal/buildsystems braid/internal/constructs \
	braid/internal/perfetto/... braid/internal/programs braid/internal/steptest braid/internal/torture
# Without what make tells its children, because tests build programs with make; never from the cache, because tests try
# the machine, too.
TEST = env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL $(GO) test -count=1 -timeout 40m

# All other packages come one at a time: some record what the others would disturb.
test: setup
	$(GO) vet ./...
	@failed=; \
	$(TEST) -p 2 $(BUSY) || failed=1; \
	$(TEST) -p 1 $$($(GO) list ./... | grep -Fvx "$$($(GO) list $(BUSY))") || failed=1; \
	[ -z "$$failed" ]

# Also the real programs that take long to build.
test-programs: setup
	@./scripts/setup $(PROGRAM_NEEDS)
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL BRAID_TEST_PROGRAMS=all $(GO) test -count 1 -timeout 180m -v ./internal/programs

# All programs of other compilers' test suites, which takes days; a part of it with, say, TORTURE='-every 20 -target arm64'.
# It can be broken off: bin/torture.jsonl holds what is done. Remove that file to begin anew.
TORTURE = -every 1
test-torture: setup
	mkdir -p bin
	$(GO) test -count 1 -timeout 0 -v ./internal/torture -args -resume $(CURDIR)/bin/torture.jsonl $(TORTURE)

# Programs for arm64 and arm under a real arm64 kernel, in emulated machines with two processors.
test-guests: setup
	GO='$(GO)' ./scripts/test-guests
	GO='$(GO)' ./scripts/test-clusters 5.10 6.12

# The tests that depend on the kernel, under several arm64 kernels in emulated machines and natively; writes the table in
# docs/kernels.md. A part of it with, say, KERNELS='-quick 5.10 6.12'; go run ./internal/kernels -help says more.
KERNELS = -table
test-kernels: setup
	$(GO) run ./internal/kernels $(KERNELS)

# Starts, stops and flushes programs under braid watch for so long; make test does it for some seconds.
SOAK = 10m
soak: setup
	$(GO) test -count 1 -timeout 0 -v -run '^TestWatchSoak$$' ./cmd/braid -args -soak $(SOAK)

# Figures are printed, never asserted: they depend on the machine.
bench: setup
	$(GO) test -run '^$$' -bench . -benchtime 1x ./compare/...
	$(GO) test -run '^$$' -bench 'SchedPipe|Programs' -benchtime 11x -timeout 20m ./bpf
	$(GO) test -run '^$$' -bench . ./inline ./inline/stub ./internal/timeline ./internal/tracefile ./internal/perfetto ./symbols
	$(GO) test -run '^$$' -bench Compile -benchtime 5x ./inline/launcher
	$(GO) test -run '^$$' -bench CompileSQLite -benchtime 1x -timeout 60m ./internal/programs

# Makes the committed objects again: runtime, eBPF programs, workloads, demo program.
generate: setup
	$(GO) generate ./inline/... ./bpf/... ./compare/... ./internal/...

# The binaries to copy onto other machines, without libc. Those for Linux need no linker either; the one for Android asks for
# Android's, as Go can't make another one without cgo (docs/android.md).
release:
	mkdir -p bin
	set -e; for t in android/arm64 linux/arm64 linux/amd64; do \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -trimpath -ldflags '-s -w' -o bin/braid-$${t%/*}-$${t#*/} ./cmd/braid; \
	done
	./scripts/check-static bin/braid-linux-arm64 bin/braid-linux-amd64
	! readelf -dW bin/braid-android-arm64 | grep NEEDED

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$bad" || { echo "gofmt would change: $$bad" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

clean:
	rm -rf bin
