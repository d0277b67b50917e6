#!/bin/sh
# Makes the committed programs, programs_PROCESSOR.tar.xz: static with musl, so that they run on any Linux of their processor.
# generate.sh [PROCESSOR...] makes some of them only. Needs the cross compilers, musl-gcc, xz, qemu-user and Debian's sources
# (scripts/debsrc).
# shellcheck disable=SC2086 # lists of flags are to be split
set -eu
cd "$(dirname "$0")"
here=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CGO_ENABLED=0 LC_ALL=C SOURCE_DATE_EPOCH=0
go build -o "$tmp/insert" insert.go

# The same flags for all variants. Functions may not know what others leave alone, because stubs and handlers do not;
# calls of oneself stay calls; a function's start is moved by what traced.c says and not by more.
flags="-std=gnu11 -O2 -g0 -Wall -Wextra -Werror -fno-pie -fno-ipa-ra -fno-optimize-sibling-calls -falign-functions=16
	-fomit-frame-pointer -fno-asynchronous-unwind-tables -fno-stack-protector"

static='-static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack'
luaflags="-std=gnu99 -O2 -g0 -fno-pie -I$tmp -DLUA_USE_POSIX -DLUA_COMPAT_5_3 -Dluai_makeseed(L)=0x5eed
	-DSTRCACHE_N=1 -DSTRCACHE_M=2 -ffile-prefix-map=$tmp=."
echo '#define DEB_HOST_MULTIARCH "none"' >"$tmp/lua5.4-deb-multiarch.h" # which Debian's build makes

# assembly NAME FLAGS...: the traced functions of the variant NAME at all alignments, as $tmp/$arch/NAME_ALIGN.s.
assembly() {
	name=$1
	shift
	for align in 0 16 32 48; do
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
	assembly push -fno-omit-frame-pointer -fno-shrink-wrap -fno-schedule-insns2 $frame
	assembly other
	first other "$step"
	$cc $flags $static -o "$tmp/$arch/workload" src/driver.c src/program.c src/table.c src/handler.c \
		"$tmp/$arch"/*_*.s "../../inline/runtime/runtime_$arch.o"
	$strip "$tmp/$arch/workload"
}

# lua: the interpreter of Debian's source, whole: plain, with stubs, with handlers. What depends on addresses or on the time is
# fixed, so that each run makes the same calls; how many is counted by a fourth one.
lua() {
	mkdir "$tmp/$arch/lua"
	for c in "$tmp"/lua/src/l*.c; do
		n=$(basename "$c" .c)
		[ "$n" = luac ] && continue
		$cc $luaflags -c "$c" -o "$tmp/$arch/lua/$n.plain.o"
		"$tmp/insert" cc $cc $luaflags -c "$c" -o "$tmp/$arch/lua/$n.stub.o"
		$cc $luaflags -finstrument-functions -c "$c" -o "$tmp/$arch/lua/$n.handler.o"
		$cc $luaflags -S "$c" -o - | awk -v code="$count" -f count/calls.awk >"$tmp/$arch/lua/$n.count.s"
		$cc $luaflags -c "$tmp/$arch/lua/$n.count.s" -o "$tmp/$arch/lua/$n.count.o"
	done
	$cc $flags -c src/handler.c -o "$tmp/$arch/lua/handlers.handler.o"
	$cc $flags -c count/calls.c -o "$tmp/$arch/lua/calls.count.o"
	for variant in plain stub handler count; do
		link=$cc
		[ $variant = stub ] && link="$tmp/insert cc $cc"
		$link $static -o "$tmp/$arch/lua_$variant" "$tmp/$arch/lua"/*.$variant.o -lm
		$strip "$tmp/$arch/lua_$variant"
	done
	nm "$tmp/$arch/lua"/*.plain.o | awk '($2 == "t" || $2 == "T") && $3 !~ /\.cold/ && $3 !~ /^\$/ { print $3 }' | sort >"$tmp/$arch/functions"
	cp src/startup.lua "$tmp/$arch/"
	calls=$(cd "$tmp/$arch" && $run ./lua_count -E startup.lua | tail -n 1)
	(cd "$tmp/$arch" && WORKLOAD_COUNT=3 $run ./lua_handler -E startup.lua 3>kept >output)
	kept=$(od -An -t u8 "$tmp/$arch/kept" | tr -d ' ')
	[ "$calls" -gt 0 ] && [ "$kept" -gt 0 ]
	printf 'plain %d\nstub %d\nhandler %d\n' "$calls" "$calls" $((kept / 2)) >"$tmp/$arch/calls"
}

pack() {
	mkdir "$tmp/$arch/pack"
	cp "$tmp/$arch/workload" "$tmp/$arch"/lua_plain "$tmp/$arch"/lua_stub "$tmp/$arch"/lua_handler "$tmp/$arch/calls" \
		"$tmp/$arch/functions" src/startup.lua "$tmp/$arch/pack/"
	# shellcheck disable=SC2046 # names of ours
	tar -C "$tmp/$arch/pack" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 --format=ustar -cf - $(ls "$tmp/$arch/pack") |
		xz -9e -T1 --check=crc32 >"$here/programs_$arch.tar.xz"
}

# musl TRIPLE: the C library for another processor, and a compiler that links with it. BRAID_MUSL names a folder where they
# are kept for the next time.
musl() {
	library=${BRAID_MUSL:-$tmp}/musl-$arch
	if [ ! -e "$library/bin/$1-gcc" ]; then
		mkdir "$tmp/$arch/build"
		(
			cd "$tmp/$arch/build"
			"$tmp/musl/configure" --prefix="$library" --disable-shared --enable-wrapper=gcc CC="$1-gcc" CROSS_COMPILE="$1-"
			make -j"$(nproc)" install
		) >"$tmp/$arch/log" 2>&1 || { cat "$tmp/$arch/log" >&2; exit 1; }
		mv "$library/bin/musl-gcc" "$library/bin/$1-gcc"
	fi
	cc=$library/bin/$1-gcc strip=$1-objcopy
}

../../scripts/debsrc musl "$tmp/musl"
../../scripts/debsrc lua5.4 "$tmp/lua"
parts=
for processor in ${*:-amd64 arm64 arm}; do
	mkdir "$tmp/$processor"
	(
		arch=$processor
		case $arch in
		amd64)
			cc=musl-gcc strip=objcopy run=
			nop='.byte 0x0f, 0x1f, 0x44, 0x00, 0x00' frame=-mno-omit-leaf-frame-pointer step='xorl %eax, %eax'
			count='incq traced_calls(%rip)'
			;;
		arm64)
			musl aarch64-linux-gnu
			run=qemu-aarch64 nop=nop frame=-mno-omit-leaf-frame-pointer step='mov x9, x0'
			count='adrp x16, traced_calls; ldr x17, [x16, :lo12:traced_calls]; add x17, x17, 1; str x17, [x16, :lo12:traced_calls]'
			;;
		arm)
			musl arm-linux-gnueabihf
			run=qemu-arm nop=nop frame= step='mov ip, r0'
			count='push {r0, r1}; movw r0, #:lower16:traced_calls; movt r0, #:upper16:traced_calls; ldr r1, [r0]; add r1, r1, #1; str r1, [r0]; pop {r0, r1}'
			;;
		esac
		strip="$strip --strip-debug --remove-section=.comment"
		workload
		lua
		pack
	) &
	parts="$parts $!"
done
for part in $parts; do
	wait "$part"
done
