#!/bin/sh
# Makes the committed programs, programs_PROCESSOR.tar.xz: static with musl, so that they run on any Linux of their processor.
# Needs the cross compilers, musl-gcc, xz, qemu-user and network access to Debian's sources (scripts/debsrc).
set -eu
cd "$(dirname "$0")"
here=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CGO_ENABLED=0 LC_ALL=C SOURCE_DATE_EPOCH=0
go build -o "$tmp/braid" ../../cmd/braid
go build -o "$tmp/insert" insert.go

# The same flags for all variants. Functions may not know what others leave alone, because stubs and handlers do not;
# calls of oneself stay calls; a function's start is moved by what traced.c says and not by more.
flags="-std=gnu11 -O2 -g0 -Wall -Wextra -Werror -fno-pie -fno-ipa-ra -fno-optimize-sibling-calls -falign-functions=16
	-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-stack-protector"

# assembly NAME FLAGS...: the traced functions of the variant NAME at all alignments, as $tmp/$arch/NAME_ALIGN.s.
assembly() {
	name=$1
	shift
	for align in 0 16 32 48; do
		# shellcheck disable=SC2086
		$cc $flags "$@" -DVARIANT="$name" -DALIGN=$align -S -o "$tmp/$arch/${name}_$align.s" src/traced.c
	done
}

# first NAME INSTRUCTION: makes an instruction the first one of each traced function.
first() {
	sed -i -E "/^(listing|matrix|schedule|io)_$1_[0-9]+:/a\\	$2" "$tmp/$arch/$1"_*.s
}

workload() {
	for variant in plain stub clock; do
		assembly $variant -dp
		for align in 0 16 32 48; do
			s=$tmp/$arch/${variant}_$align.s
			"$tmp/insert" -arch "$arch" -mode $variant <"$s" >"$s.inserted"
			mv "$s.inserted" "$s"
		done
	done
	assembly handler -finstrument-functions
	assembly gettime -finstrument-functions
	sed -i 's/__cyg_profile_func/gettime_func/' "$tmp/$arch"/gettime_*.s
	assembly usdt -include src/usdt.h
	# Functions whose first instructions are of the kinds that cost a probe differently.
	assembly nop5
	first nop5 "$nop"
	assembly push -fno-omit-frame-pointer -fno-shrink-wrap $frame
	assembly other
	first other "$step"
	# shellcheck disable=SC2086
	$cc $flags -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack -o "$tmp/$arch/workload" src/driver.c src/program.c src/table.c src/handler.c \
		"$tmp/$arch"/*_*.s "../../inline/runtime/runtime_$arch.o"
	$strip "$tmp/$arch/workload"
}

pack() {
	mkdir "$tmp/$arch/pack"
	cp "$tmp/$arch/workload" "$tmp/$arch/pack/"
	# shellcheck disable=SC2046 # names of ours
	tar -C "$tmp/$arch/pack" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 --format=ustar -cf - $(ls "$tmp/$arch/pack") |
		xz -9e -T1 --check=crc32 >"$here/programs_$arch.tar.xz"
}

arch=amd64 cc=musl-gcc strip='objcopy --strip-debug --remove-section=.comment'
nop='.byte 0x0f, 0x1f, 0x44, 0x00, 0x00' frame=-mno-omit-leaf-frame-pointer step='xorl %eax, %eax'
mkdir "$tmp/$arch"
workload
pack
