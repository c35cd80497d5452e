#!/bin/bash
# tests/e2e/hang.sh - workers that live and do not get on are lost, too; those
# that were stopped with everyone, or by a debugger, are not.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "$TESTS/tools/losses.sh"

for i in $(sample 1 0 1 2); do
	name=$(echo a b c | cut -d ' ' -f $((i + 1)))
	lose "$OUT" $((BYTES / 2)) "19:$i" "${RUN[@]}"
	as_if_nothing "$name hangs"
	check "$name hangs: it is named" says \
	    "^straddle: session $name: .* hangs: .*stopped by a signal"
	check "$name hangs: one loss" same 1 "$(losses)"
done

# Ctrl-Z and fg: longer than any of them may do nothing.
lose "$OUT" $((BYTES / 2)) stop:7000 "${RUN[@]}"
as_if_nothing "a stopped job"
check "a stopped job has lost nobody" same 0 "$(losses)"

lose "$OUT" $((BYTES / 2)) trace:1:7000 "${RUN[@]}"
if exits 77; then
	echo "skipped: this process may not trace its workers"
else
	as_if_nothing "a worker that was looked at"
	check "a worker that was looked at is not lost" same 0 "$(losses)"
fi

e2e_end
