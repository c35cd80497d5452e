#!/bin/bash
# tests/fuzz/run.sh - run each fuzzer for FUZZ_S seconds from its corpus, under
# ASan and UBSan.  An input that crashes is saved as $B/fuzz/NAME-crash-* and fails
# the run; move it to tests/corpus/NAME, from where make check replays it.
#
# usage: B=build/address FUZZ_S=60 tests/fuzz/run.sh NAME...
#
#   JOBS=N       number of fuzzers that run in parallel (default: number of cores)
set -u
export B=${B:-build/address} FUZZ_S=${FUZZ_S:-60}

fuzz_one() {
	local name=$1 dir=$B/fuzz rc=0

	mkdir -p "$dir/corpus/$name" "$dir/seeds/$name"
	# The same inputs as in make check: tests/run.sh, seeds().
	cp "tests/corpus/$name"/* "$dir/seeds/$name" 2>/dev/null
	[ "$name" != conf ] || cp tests/conf/*.in config/*.conf \
	    "$dir/seeds/$name"
	"$dir/$name" -max_total_time="$FUZZ_S" -timeout=120 \
	    -rss_limit_mb=2048 -artifact_prefix="$dir/$name-" \
	    -dict="tests/fuzz/$name.dict" -print_final_stats=1 \
	    "$dir/corpus/$name" "$dir/seeds/$name" \
	    >"$dir/$name.log" 2>&1 || {
		rc=1
		tail -n 40 "$dir/$name.log"
		echo "to replay it in make check: mv $dir/$name-* tests/corpus/$name/"
	}
	printf '%-10s %s executions, %s, from %s seeds\n' "$name" \
	    "$(sed -n 's/^stat::number_of_executed_units: //p' \
	    "$dir/$name.log")" \
	    "$(grep -o 'DONE.*\|ERROR.*' "$dir/$name.log" |
	    tail -n 1)" "$(find "$dir/seeds/$name" -type f | wc -l)"
	return $rc
}
export -f fuzz_one

printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" \
    bash -c 'fuzz_one "$0"' || exit 1
