#!/bin/bash
# tests/e2e/hang.sh - a worker that makes no progress counts as lost; one that was
# stopped together with the whole job, or by a debugger, does not.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "$TESTS/tools/losses.sh"

for i in $(sample 1 0 1 2); do
	name=$(echo a b c | cut -d ' ' -f $((i + 1)))
	lose "$OUT" $((BYTES / 2)) "19:$i" "${RUN[@]}"
	check_unaffected "$name hangs"
	check "$name hangs: the error names it" stderr_has \
	    "^straddle: session $name: .* hangs: .*stopped by a signal"
	check "$name hangs: one loss" equal 1 "$(losses)"
done

# As Ctrl-Z and fg do, for longer than the watchdog's limit.
lose "$OUT" $((BYTES / 2)) stop:7000 "${RUN[@]}"
check_unaffected "the whole job stopped for 7 s"
check "the whole job stopped for 7 s: no worker is lost" equal 0 "$(losses)"

lose "$OUT" $((BYTES / 2)) trace:1:7000 "${RUN[@]}"
if exits 77; then
	echo "skipped: this process may not trace its workers"
else
	check_unaffected "a worker traced for 7 s"
	check "a worker traced for 7 s: it is not lost" equal 0 "$(losses)"
fi

e2e_end
