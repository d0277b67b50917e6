package probe

// Needs clang-19, llvm-strip-19 and libbpf's headers (Debian: clang-19 llvm-19 libbpf-dev). The objects are committed.

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -cflags "-Wall -Werror -mcpu=v3" trace trace.bpf.c
