#!/bin/sh
# Makes the committed runtime objects, two for each processor that has stubs: runtime_PROCESSOR.o with the thread-local
# variable __braid_tls, runtime_word_PROCESSOR.o without (BRAID_WORD). They are freestanding apart from a few libc functions
# (runtime.h lists them), so one object serves glibc, musl and bionic, static and shared.
#
# generate.sh DIRECTORY PROCESSOR FLAG... makes runtime_PROCESSOR.o there with more compiler flags (control/race_test.go).
set -eu
to=${1:-..}
only=${2:-}
[ $# -lt 2 ] || shift 2
more=$*
cd "$(dirname "$0")/src"
CC=${BRAID_CLANG:-clang-19}
LD=${BRAID_LLD:-ld.lld-19}
OBJCOPY=${BRAID_OBJCOPY:-llvm-objcopy-19}
flags='-std=gnu11 -O2 -fPIC -ffreestanding -fno-builtin -fno-stack-protector -fomit-frame-pointer -fno-ident
	-fvisibility=hidden -Wall -Wextra -Werror'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
link() { # result, processor, clang target, compiler flags, objcopy flags
	parts=
	for c in runtime.c area.c modules.c threads.c rings.c api.c "slow_$2.S"; do
		# shellcheck disable=SC2086
		$CC --target="$3" $flags $4 $more -c "$c" -o "$out/${c%.?}.o"
		parts="$parts $out/${c%.?}.o"
	done
	# shellcheck disable=SC2086
	$LD -r $parts -o "$out/all.o"
	# shellcheck disable=SC2086
	$OBJCOPY --strip-unneeded --remove-section=.comment --remove-section=.llvm_addrsig $5 \
		--keep-global-symbol=__braid_tls --keep-global-symbol=__braid_slow --keep-global-symbol=__braid_slow_word \
		--keep-global-symbol=__braid_api_thread --keep-global-symbol=__braid_api_trigger \
		"$out/all.o" "$to/$1.o"
}
one() {
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	link "runtime_$1" "$1" "$2" "$3" "$4"
	[ -n "$only" ] ||
		link "runtime_word_$1" "$1" "$2" "$3 -DBRAID_WORD" "$4"
}
tables=-fasynchronous-unwind-tables
one amd64 x86_64-linux-gnu "$tables -mgeneral-regs-only -fcf-protection=full" ''
# x18 belongs to the platform (Android: shadow call stack). Atomics in line: libgcc's helpers are not everywhere.
one arm64 aarch64-linux-gnu "$tables -mgeneral-regs-only -mbranch-protection=standard -ffixed-x18 -mno-outline-atomics" ''
# Without build attributes it goes with soft and hard float alike: it has no floating point in its interface.
one arm armv7a-linux-gnueabihf '-marm -mfloat-abi=soft -mtp=cp15 -fno-unwind-tables -fno-asynchronous-unwind-tables' \
	--remove-section=.ARM.attributes
