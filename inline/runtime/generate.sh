#!/bin/sh
# Makes the committed runtime objects, one for each processor that has stubs. They are freestanding apart from a few
# libc functions (runtime.c lists them), so one object serves glibc, musl and bionic, static and shared.
set -eu
cd "$(dirname "$0")/src"
CC=${BRAID_CLANG:-clang-19}
flags='-std=gnu11 -O2 -fPIC -ffreestanding -fno-builtin -fno-stack-protector -fomit-frame-pointer -fno-ident
	-fvisibility=hidden -fasynchronous-unwind-tables -Wall -Wextra -Werror'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
one() { # goarch, clang target, processor flags
	for c in runtime area modules threads; do
		# shellcheck disable=SC2086
		$CC --target="$2" $flags $3 -c "$c.c" -o "$out/$c.o"
	done
	# shellcheck disable=SC2086
	$CC --target="$2" $3 -c "slow_$1.S" -o "$out/slow.o"
	ld -r -m "$4" "$out/runtime.o" "$out/area.o" "$out/modules.o" "$out/threads.o" "$out/slow.o" -o "$out/all.o"
	objcopy --strip-unneeded --remove-section=.comment --keep-global-symbol=__braid_tls --keep-global-symbol=__braid_slow \
		"$out/all.o" "../runtime_$1.o"
}
one amd64 x86_64-linux-gnu '-mgeneral-regs-only -fcf-protection=full' elf_x86_64
