#!/bin/bash
# tests/e2e/confine.sh - what workers give up after their load, as the kernel
# tells it of every thread, and what becomes of one that oversteps.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PAIR=(-m "$MODEL" -p "In the beginning" -n 8 --temp 0
    -s a=cpu,threads=2 -s b=cpu,threads=2)

# held PART: holds in every session of the JSON in $OUT; else says why not.
held()
{
	"$PYTHON" - "$OUT" "$1" <<-'END'
	import json, sys
	said = {s['confined'][sys.argv[2]]
	        for s in json.load(open(sys.argv[1]))['sessions']}
	if said != {True}:
	    print(f'skipped: {sys.argv[2]}:', *sorted(map(str, said)))
	    sys.exit(1)
	END
}

works "run, as JSON" run "${PAIR[@]}" --json -q
text=$(field text)
holds=
for part in capabilities no_new_privs not_dumpable landlock seccomp; do
	! held $part || holds="$holds $part"
done
has() { [[ "$holds " == *" $1 "* ]]; }
# These two need nothing of the kernel that it may not have.
check "no capabilities, no new privileges" eval \
    'has capabilities && has no_new_privs'

works "run -v" run "${PAIR[@]}" -v
check "-v says so of each session" \
    same 2 "$(grep -c "^straddle: session [ab]: confined: no cap" "$ERR")"
works "run" run "${PAIR[@]}"
if [ "$(wc -w <<<"$holds")" = 5 ]; then
	check "where all of it holds, nothing is said" \
	    nothing "$(grep confined "$ERR" || true)"
else
	check "what does not hold is said, once" \
	    same 1 "$(grep -c "note: workers are not confined by" "$ERR")"
fi

# --- as the kernel tells it ---

has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
task_says()	# NAME VALUE, of every thread of every worker
{
	local pid bad=0

	for pid in $(workers); do
		for task in /proc/"$pid"/task/*; do
			grep -q "^$1:[[:space:]]*$2\$" "$task/status" || bad=1
		done
	done
	return $bad
}
straddle_bg run "${PAIR[@]}" -n 100000 --ctx 65536 --ignore-eos -q
check "text comes" in_time has_text
check "two workers" same 2 "$(workers | wc -l)"
for set in CapInh CapPrm CapEff CapAmb; do
	check "$set is empty" task_says $set 0000000000000000
done
if [ "$(id -u)" = 0 ]; then
	check "CapBnd is empty" task_says CapBnd 0000000000000000
fi
check "NoNewPrivs" task_says NoNewPrivs 1
! has seccomp || check "Seccomp" task_says Seccomp 2
pids=($(workers))
! has not_dumpable || check "not dumpable: the process is root's" \
    same 0 "$(stat -c %u "/proc/${pids[0]}/status")"
kill -TERM "$GROUP"
check "the end" finishes

# --- a worker that oversteps ---

[ -x "$FAULTY" ] || e2e_end
BIN=$FAULTY
if has seccomp; then
	for call in socket openat execve ptrace; do
		for thread in 1 2; do
			export STRADDLE_FAULT=worker:$call:$thread
			straddle run "${PAIR[@]}" -q
			check "$call on thread $thread is stopped and told" \
			    is_refusal 1 "session [ab]: its worker called\
 $call \(number [0-9]+\), which is forbidden after the load"
		done
	done
fi
export STRADDLE_FAULT=worker:socket:3
works "a thread that is not there does nothing" run "${PAIR[@]}" -q
check "and the text is the same" same "$text" "$(cat "$OUT")"

e2e_end
