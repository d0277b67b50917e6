package bpf

// Needs clang-19, llvm-strip-19 and libbpf's headers (Debian: clang-19 llvm-19 libbpf-dev). The objects are committed.

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" process process.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" sched sched.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" io io.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_RAW_TP" processRaw process.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_RAW_TP" schedRaw sched.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_RAW_TP" ioRaw io.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" watch watch.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_RAW_TP" watchRaw watch.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" probe probe.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_WATCH" schedWatch sched.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_WATCH -DBRAID_RAW_TP" schedWatchRaw sched.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_WATCH" ioWatch io.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_WATCH -DBRAID_RAW_TP" ioWatchRaw io.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" wait wait.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3 -DBRAID_RAW_TP" waitRaw wait.bpf.c
