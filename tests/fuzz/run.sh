#!/bin/bash
# tests/fuzz/run.sh - each fuzzer for FUZZ_S seconds from its corpus, with ASan and
# UBSan.  A crash is left in build/fuzz/NAME-crash-* and fails the run; its
# place is tests/corpus/NAME, where make check replays it for ever.
#
# usage: FUZZ_S=60 tests/fuzz/run.sh NAME...
set -eu
seconds=${FUZZ_S:-60}
flags="-std=gnu11 -D_GNU_SOURCE -I. -g -O1 -ffp-contract=off -pthread
-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all"
libs="-luring -lnuma -lbsd -lconfuse -ljansson -lpcre2-8 -ledit -lm"
mkdir -p build/fuzz
[ "$(uname -m)" = x86_64 ] && other=arm || other=x86
common=$(find config shm kernels layers -name '*.c' \
    ! -path "kernels/$other/*" ! -path "kernels/peak/${other}_*" \
    ! -path 'kernels/hexagon/*.c' | sort
    ls kernels/hexagon_host/*.c coordinator/text/{bpe,detokenizer,merge,pre}.c \
    coordinator/text/{split,spm,tokenizer,utf8,vocab}.c \
    tests/support/{bpe_vocab,gguf_walk,gguf_writer}.c)
mkdir -p build/fuzz/obj
for c in $common; do
	o=build/fuzz/obj/$(echo "$c" | tr / _).o
	# Variants of kernels are linked, not fuzzed: no need to wait for
	# their instrumented code.
	own=${flags/fuzzer,/fuzzer-no-link,}
	case $c in
	kernels/x86/* | kernels/arm/* | kernels/peak/*)
		own="-std=gnu11 -D_GNU_SOURCE -I. -O1 -ffp-contract=off
		    $(make -s CC=clang-14 F="${c%.c}.o" print-flags)" ;;
	esac
	# shellcheck disable=SC2086
	[ "$o" -nt "$c" ] || clang-14 $own -c -o "$o" "$c"
done
bad=0
for name in "$@"; do
	# shellcheck disable=SC2086
	clang-14 $flags -o "build/fuzz/$name" "tests/fuzz/$name.c" \
	    build/fuzz/obj/*.o $libs
	mkdir -p "build/fuzz/corpus/$name" "build/fuzz/seeds/$name"
	# As in make check: tests/run.sh, seeds().
	cp "tests/corpus/$name"/* "build/fuzz/seeds/$name" 2>/dev/null || true
	[ "$name" != conf ] || cp tests/conf/*.in config/*.conf \
	    "build/fuzz/seeds/$name"
	"build/fuzz/$name" -max_total_time="$seconds" -timeout=120 \
	    -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
	    -dict="tests/fuzz/$name.dict" -print_final_stats=1 \
	    "build/fuzz/corpus/$name" "build/fuzz/seeds/$name" \
	    >"build/fuzz/$name.log" 2>&1 || {
		bad=1
		tail -n 40 "build/fuzz/$name.log"
		echo "keep it: mv build/fuzz/$name-* tests/corpus/$name/"
	}
	printf '%-10s %s executions, %s, from %s seeds\n' "$name" \
	    "$(sed -n 's/^stat::number_of_executed_units: //p' \
	    "build/fuzz/$name.log")" \
	    "$(grep -o 'DONE.*\|ERROR.*' "build/fuzz/$name.log" |
	    tail -n 1)" "$(find "build/fuzz/seeds/$name" -type f | wc -l)"
done
exit $bad
