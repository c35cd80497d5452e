#!/bin/bash
# tests/e2e/confine.sh - the confinement of workers before and after their load:
# what the kernel reports for every thread, and how a forbidden call ends.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PAIR=(-m "$MODEL" -p "In the beginning" -n 8 --temp 0
    -s a=cpu,threads=2 -s b=cpu,threads=2)

# is_confined PART: this part holds in every session of the JSON in $OUT; if not,
# print why.
is_confined()
{
	"$PYTHON" - "$OUT" "$1" <<-'END'
	import json, sys
	values = {s['confined'][sys.argv[2]]
	          for s in json.load(open(sys.argv[1]))['sessions']}
	if values != {True}:
	    print(f'skipped: {sys.argv[2]}:', *sorted(map(str, values)))
	    sys.exit(1)
	END
}

check_success "run --json" run "${PAIR[@]}" --json -q
text=$(field text)
holds=
for part in capabilities no_new_privs not_dumpable landlock seccomp_load \
    seccomp; do
	! is_confined $part || holds="$holds $part"
done
has() { [[ "$holds " == *" $1 "* ]]; }
# Every kernel has these two.
check "workers have no capabilities and cannot gain privileges" eval \
    'has capabilities && has no_new_privs'

check_success "run -v" run "${PAIR[@]}" -v
check "-v reports the confinement of each session" \
    equal 2 "$(grep -c "^straddle: session [ab]: confined: no cap" "$ERR")"
check_success "run" run "${PAIR[@]}"
if [ "$(wc -w <<<"$holds")" = 6 ]; then
	check "without -v full confinement is not reported" \
	    is_blank "$(grep confined "$ERR" || true)"
else
	check "missing confinement is reported once" \
	    equal 1 "$(grep -c "note: confinement unavailable: " "$ERR")"
fi

# --- what the kernel reports ---

has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
# has_status NAME VALUE: in /proc of every thread of every worker.
has_status()
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
check "text is printed while it is generated" eventually has_text
check "there are two workers" equal 2 "$(workers | wc -l)"
for set in CapInh CapPrm CapEff CapAmb; do
	check "$set is empty" has_status $set 0000000000000000
done
if [ "$(id -u)" = 0 ]; then
	check "CapBnd is empty" has_status CapBnd 0000000000000000
fi
check "NoNewPrivs is 1" has_status NoNewPrivs 1
! has seccomp || check "Seccomp is 2" has_status Seccomp 2
# Kernels before 5.9 do not count them.
if has seccomp && grep -q "^Seccomp_filters:" /proc/self/status; then
	# Those of the worker's parents count as well.
	own=$(sed -n 's/^Seccomp_filters:[[:space:]]*//p' /proc/self/status)
	check "two filters are in force" \
	    has_status Seccomp_filters $((own + 2))
fi
pids=($(workers))
! has not_dumpable || check "a worker is not dumpable: /proc shows root as its owner" \
    equal 0 "$(stat -c %u "/proc/${pids[0]}/status")"
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends

# --- forbidden calls ---

[ -x "$FAULTY" ] || e2e_end
BIN=$FAULTY
if has seccomp; then
	for call in socket openat execve ptrace; do
		for thread in 1 2; do
			export STRADDLE_FAULT=worker:$call:$thread
			straddle run "${PAIR[@]}" -q
			check "$call on thread $thread is blocked and reported" \
			    is_refusal 1 "session [ab]: its worker called\
 $call \(number [0-9]+\), which is forbidden after the load"
		done
	done
fi
if has seccomp_load; then
	for fault in socket:1 socket:2 openat:1 execve:2; do
		export STRADDLE_FAULT=worker:load-$fault
		straddle run "${PAIR[@]}" -q
		check "$fault before the load is blocked and reported" \
		    is_refusal 1 "session [ab]: its worker called\
 ${fault%:*} \(number [0-9]+\), which is forbidden during the load"
	done
	# A worker that only explains is confined as well.
	export STRADDLE_FAULT=worker:load-openat:1
	straddle explain -m "$MODEL" -s a=cpu
	check "explain: exit 1" exits 1
	check "explain: openat is blocked" stderr_has "session a: its worker\
 called openat \(number [0-9]+\), which is forbidden during the load"
fi
export STRADDLE_FAULT=worker:uring:1
check_success "workers without io_uring" run "${PAIR[@]}" -v
check "without io_uring they read with pread" equal 2 \
    "$(grep -c "^straddle: session [ab]: pid .* with pread" "$ERR")"
check "without io_uring they give the same text" equal "$text" "$(cat "$OUT")"
export STRADDLE_FAULT=worker:socket:3
check_success "a fault for a thread that does not exist" run "${PAIR[@]}" -q
check "that fault does not change the text" equal "$text" "$(cat "$OUT")"

e2e_end
