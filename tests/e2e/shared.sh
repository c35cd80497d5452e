#!/bin/bash
# tests/e2e/shared.sh - sessions that share a worker process: the same text, one cap
# that is the sum of theirs, one loss for all of them, and the session that is to
# blame is named.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "$TESTS/tools/losses.sh"

HALF=$((BYTES / 2))
# Oldest first: the worker of a and c, then that of b.
SHARED=(-s a=cpu,threads=1,process=p -s b=cpu,threads=1
    -s c=cpu,threads=2,process=p)
RUN=("${RUN[@]:0:${#RUN[@]}-${#THREE[@]}}" "${SHARED[@]}")
PAIR=(-s a=cpu,threads=1,cap=64MiB,process=p
    -s b=cpu,threads=2,cap=64MiB,process=p)
SHORT=(run -m "$MODEL" -p "In the beginning" --temp 0 -n 8)
BOTH='its worker, which serves a, b,'

# --- what it looks like ---

straddle "${RUN[@]}"
check_unaffected "a, c in one worker"
check "the table says who shares" stderr_has '^c .* with a$'
check "it says what is shared" stderr_has \
    '^a, c: one worker process, held to the sum of their caps, .* the row of a has'

check_success "two sessions, apart" "${SHORT[@]}" -q -s a=cpu -s b=cpu
text=$(cat "$OUT")
check_success "two sessions, in one worker" "${SHORT[@]}" -q "${PAIR[@]}" --json
check "two sessions, in one worker: the same text" equal "$text" \
    "$(field text)"
check "two sessions, in one worker: JSON" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	a, b = json.load(open(sys.argv[1]))['sessions']
	assert a['process'] == b['process'] == 'p', (a, b)
	# The kernel counts the process, and limits it.
	assert a['peak'] > 0 and b['peak'] is b['unaccounted'] is None, (a, b)
	assert a['limit'] == b['limit'] and a['limit'] in (None, 128 << 20) or \
	    a['enforced_by'] == 'RLIMIT_DATA', a
	assert a['confined'] == b['confined'], (a, b)
	# What the process needs itself is counted once.
	assert a['runtime'] > 1 << 20 > b['runtime'], (a, b)
	END
sanitized || check "two sessions, in one worker: the plan is what they need" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	a, b = json.load(open(sys.argv[1]))['sessions']
	# One may have given its staging back before the other takes its own.
	less = (4 << 20) + max(a['staging'], b['staging'])
	assert -less <= a['peak'] - a['planned'] - b['planned'] <= 4 << 20, (a, b)
	assert -less <= a['unaccounted'] <= 4 << 20, a
	END
check_success "plan of a shared worker" plan -m "$MODEL" "${PAIR[@]}"
check "plan says what is shared" stdout_has \
    '^a, b: one worker process, held to the sum of their caps, 128 MiB'
check_success "explain of a shared worker" explain -m "$MODEL" "${PAIR[@]}"
check_success "plan --check" plan --check "${PAIR[@]}"
check "plan --check prints the key" stdout_has '^	process = "p"$'
check_refusal "a Hexagon session in a shared worker" 2 \
    'session h: process: a session on hexagon has a process of its own' \
    plan -m "$MODEL" -s h=hexagon,process=p -s b=cpu,process=p
check_success "as many as there are pieces" "${SHORT[@]}" -q \
    -s "10*cpu,threads=1,process=all"
check "as many as there are pieces: the same text" equal "$text" "$(cat "$OUT")"

# --- confinement ---

straddle_bg "${SHORT[@]}" -n 100000 --ctx 65536 --ignore-eos \
    "${PAIR[@]//cap=64MiB/cap=512MiB}"
generating() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
check "text is printed" eventually generating
# Threads of the two sessions: 1 and 2.
threads_are()	# NAME VALUE
{
	local pid n=0 task

	for pid in $(workers); do
		for task in /proc/"$pid"/task/*; do
			grep -q "^$1:[[:space:]]*$2\$" "$task/status" || return 1
			n=$((n + 1))
		done
	done
	[ "$n" = 3 ]
}
check "there is one worker" equal 1 "$(workers | wc -w)"
# TSan has a thread of its own.
if ! sanitized; then
	check "no thread has a capability" threads_are CapPrm 0000000000000000
	check "no thread can gain privileges" threads_are NoNewPrivs 1
fi
sanitized || [ -n "${STRADDLE_LAUNCH-}" ] ||
    check "each thread has a filter" threads_are Seccomp 2
check "its title has both" eval 'ps -o args= -p "$(workers)" |
    grep -q "a embedding layers .*, b layers .* head"'
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends

# --- losses ---

lose "$OUT" $HALF 9:0 "${RUN[@]}"
check_unaffected "the shared worker is lost"
check "the shared worker is lost: one loss" equal 1 "$(losses)"
check "the shared worker is lost: both are named, and their memory" stderr_has \
    '^straddle: session [ac]: its worker, which serves a, c, was killed by signal 9 \(Killed\) \(planned memory .*loss 1 of'

lose "$OUT" $HALF 9:1 "${RUN[@]}"
check_unaffected "the worker between them is lost"
check "the worker between them is lost: one loss" equal 1 "$(losses)"

lose "$OUT" $HALF 9:0,9:1 "${RUN[@]}"
check_unaffected "both workers are lost"
check "both workers are lost: two losses" equal 2 "$(losses)"

lose "$OUT" $HALF 9:0+new+9:-1 "${RUN[@]}"
check_unaffected "the replacement is lost too"
check "the replacement is lost too: two losses" equal 2 "$(losses)"

lose "$OUT" $HALF 9:0+recovered+9:1+recovered+9:0 "${RUN[@]}"
check_unaffected "one loss after the other"

lose "$OUT" 0 "sleep:$((RANDOM % 40))+9:-1" "${RUN[@]}"
check_unaffected "a loss during the start"

lose "$OUT" $HALF 19:0 "${RUN[@]}"
check_unaffected "the shared worker hangs"
check "the shared worker hangs: one loss" equal 1 "$(losses)"

lose "$OUT" $HALF 9:0+recovered+9:0 "${RUN[@]}" --recover 1
check "one loss too many: exit 1" exits 1
check "one loss too many: no process is left" no_process_left

# --- the cap of the sum ---

if ! sanitized; then
	for only in 'memory past the ledger' 'every session full*' \
	    'kill -9*decode, caps equal*' 'kill -9 of all*'; do
		check_success "stress: $only" stress -m "$MODEL" "${PAIR[@]}" \
		    --ctx 256 --only "$only"
	done
	check_success "stress: past the ledger" stress -m "$MODEL" "${PAIR[@]}" \
	    --ctx 256 --only 'memory past the ledger'
	check "stress: past the ledger: the sum is the limit" stdout_has \
	    "$BOTH was killed .* reached the limit of 128 MiB|the kernel refused|no caps here"
fi
if hide_groups; then
	check_success "without groups" "${SHORT[@]}" -q "${PAIR[@]}"
	check "without groups: the same text" equal "$text" "$(cat "$OUT")"
	sanitized || check_success "without groups: past the ledger" stress \
	    -m "$MODEL" "${PAIR[@]}" --ctx 256 --only 'memory past the ledger'
	restore_groups
fi

# --- one session is to blame ---

[ -x "$FAULTY" ] || e2e_end
BIN=$FAULTY
export STRADDLE_FAULT STRADDLE_FAULT_FILE
fault()
{
	STRADDLE_FAULT=worker:$1
	STRADDLE_FAULT_FILE=$T/fault
	printf '%8s' '' | tr ' ' '\0' >"$STRADDLE_FAULT_FILE"
}

fault hang:4
straddle "${SHORT[@]}" -q "${PAIR[@]}"
check "b hangs: exit 0, no process left" is_success
check "b hangs: the same text" equal "$text" "$(cat "$OUT")"
check "b hangs: it is named" stderr_has \
    "^straddle: session b: $BOTH hangs: nothing has moved .*loss 1 of"
check "b hangs: one loss" equal 1 "$(losses)"

fault memo:0
straddle "${SHORT[@]}" "${PAIR[@]}"
check "each aborts once: exit 0, no process left" is_success
check "each aborts once: the same text" equal "$text" "$(cat "$OUT")"
check "each aborts once: two losses" equal 2 "$(losses)"
for name in a b; do
	check "each aborts once: the memo of $name" stderr_has \
	    "^straddle: the worker of a, b wrote: $name: found a memo of $name, with 42"
done

fault epoch:1
PROGRAM=$BIN
lose "$OUT" $HALF 9:1 "${RUN[@]}"
check "a wrong epoch: exit 1" exits 1
check "a wrong epoch: the error names a session" stderr_has \
    '^straddle: session [ac]: its worker acknowledged epoch 3, but '
check "a wrong epoch: no process is left" no_process_left

fault hello:0
straddle "${SHORT[@]}" -q "${PAIR[@]}"
check "a hello of 2^64 bytes: exit 1" exits 1
check "a hello of 2^64 bytes: the error says so" stderr_has \
    '^straddle: session [ab]: its worker says that it has 18446744073709551615 bytes in memory, more than 1 PiB'
check "a hello of 2^64 bytes: no process is left" no_process_left

# Thread 2 is b's.
if ! sanitized && [ -z "${STRADDLE_LAUNCH-}" ]; then
	for call in socket:2 load-openat:2; do
		fault $call
		straddle "${SHORT[@]}" -q "${PAIR[@]}"
		check "b calls $call: exit 1" exits 1
		check "b calls $call: it is named" stderr_has \
		    '^straddle: session b: its worker called (socket|openat) '
		check "b calls $call: no process is left" no_process_left
	done
fi

# The null device computes nothing, and is not tested.
fault wrong-answer:1
straddle "${SHORT[@]}" -q -s a=null,process=p -s b=cpu,process=p
check "b computes wrong results: exit 1" exits 1
check "b computes wrong results: it is named" stderr_has \
    '^straddle: session b: device cpu computes wrong results'
check "b computes wrong results: no process is left" no_process_left

for seed in $(sample 4 1 2 3 5 6 7 9 10 11 13); do
	fault "message:$seed"
	straddle "${SHORT[@]}" -q "${PAIR[@]}" --recover 2
	check "a wrong message, seed $seed: the same text or a session is named" \
	    eval 'equal "$text" "$(cat "$OUT")" ||
	    stderr_has "^straddle: session [ab]: |the worker of a, b wrote"'
	check "a wrong message, seed $seed: no process is left" no_process_left
done

e2e_end
