#!/bin/sh
# Makes the committed demo programs: static, so that they run on any Linux of their processor, and with their symbols.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd ../.. && go build -o "$tmp/braid" ./cmd/braid)
cd src
"$tmp/braid" cc --skip now --skip pin --skip sleep_ms musl-gcc -std=gnu11 -O2 -g0 -Wall -Wextra -Werror -static -fno-pie -no-pie \
	-Wl,--gc-sections,--build-id=sha1 -ffile-prefix-map="$PWD"=. -o "$tmp/demo" demo.c
objcopy --remove-section=.comment --strip-debug "$tmp/demo" ../demo_amd64
