#!/bin/bash
# tests/e2e/stress.sh - straddle stress: a sample of its cases (make check-stress
# runs all); a case that fails is reported as failed, and one that cannot run here
# as skipped.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PAIR=(-m "$MODEL" -s a=cpu,cap=64MiB,threads=1 -s b=cpu,cap=64MiB,threads=1
    --ctx 256)
cases() { grep -c "^$1 " "$OUT"; }

check_success "stress --list" stress --list
check "--list prints at least fifteen cases" test "$(wc -l <"$OUT")" -ge 15
check "no two cases have the same name" is_blank "$(sort "$OUT" | uniq -d)"
check_refusal "--only with an unknown case" 2 \
    "no such case; .*--list" \
    stress "${PAIR[@]}" --only "no such case"

# check_cases PATTERN...: each case holds and reports numbers.
check_cases()
{
	local only

	for only; do
		straddle stress "${PAIR[@]}" --only "$only" --json --seed 3
		check "$only: exit 0, no process left" is_success
		check "$only: the JSON has the stable keys" has_keys stress
		check "$only: held, with numbers and peaks within the caps" \
		    "$PYTHON" - "$OUT" <<-'END'
		import json, sys
		o = json.load(open(sys.argv[1]))
		assert o['cases'] and o['seed'] == 3, o
		for c in o['cases']:
		    assert c['held'] and not c['skipped'], c
		    assert any(x.isdigit() for x in c['detail']), c
		    for s in c['sessions']:
		        assert 0 < s['peak'], s
		        assert s['peak'] <= s['cap'] or c['unenforced'], s
		END
	done
}

mapfile -t cases < <(sample 4 'kill -9 of each worker in *' 'disk error*' \
    'impossible counters*' 'nonsense*' 'kill -9 of the coordinator' 'hundreds*')
check_cases "${cases[@]}"
if ! sanitized; then
	mapfile -t cases < <(sample 3 'one byte*' 'every session full*' \
	    'kill -9*caps equal*' 'SIGSEGV of each worker in decode' \
	    'short reads*')
	check_cases "${cases[@]}"
fi

# With this seed, the first of all texts is drawn again after others.
check_success "hundreds of short texts, one drawn twice" stress "${PAIR[@]}" \
    --only 'hundreds*' --seed 745692

# with_fault FAULT COMMAND...: the command, with $FAULTY as the program, that is
# straddle with the fault that STRADDLE_FAULT names.
with_fault() {
	local BIN=$FAULTY

	export STRADDLE_FAULT=coordinator:$1:1
	shift
	"$@"
	unset STRADDLE_FAULT
}

# On a busy machine a signal may come after the load; the case then repeats the load
# and slows it down.
with_fault stress-late check_cases 'kill -9 of each worker in load'

# --- cases that fail, or cannot run ---

with_fault stress-logits straddle stress "${PAIR[@]}" \
    --only 'SIGTERM of each worker in prefill'
check "a case with wrong logits: exit 1" exits 1
check "a case with wrong logits: reported as broken, with the reason" \
    stdout_has '^BROKE +SIGTERM .*: a: other logits, [0-9a-f]{16} and not '
check "a case with wrong logits: the sum counts it" \
    stderr_has '1 of 1 cases did not hold'

straddle stress "${PAIR[@]}" --only 'memory past the ledger' --json
check "memory past the ledger: exit 0, no process left" is_success
check "memory past the ledger: stopped by the kernel, or skipped" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	c, = json.load(open(sys.argv[1]))['cases']
	assert c['held'] != c['skipped'], c
	if c['skipped']:
	    assert 'the kernel enforces no caps here' in c['detail'], c
	else:
	    assert 'for memory: its group reached the limit' in c['detail'] or \
	        'the kernel refused' in c['detail'], c
	END

if [ -z "${STRADDLE_CGROUP_ROOT-}" ] && ! sanitized && hide_groups; then
	check_success "memory past the ledger, without groups" \
	    stress "${PAIR[@]}" \
	    --only 'memory past the ledger'
	check "memory past the ledger, without groups: refused, or skipped" \
	    stdout_has '^(held .*the kernel refused|skipped )'
	restore_groups
fi

# --- --soak ---

check_success "stress --soak" stress "${PAIR[@]}" --soak 6
check "--soak prints rounds and losses, and no descriptors leak" \
    stdout_has '^held +soak .* rounds .* losses.*descriptors ([0-9]+) to \1, '

with_fault stress-leak straddle stress "${PAIR[@]}" --soak 6
check "a descriptor leak: exit 1" exits 1
check "a descriptor leak: the error names it" \
    stdout_has "^BROKE +soak .*the coordinator's descriptors grew from [0-9]+ to "

straddle_bg stress "${PAIR[@]}" --soak 600
has_workers() { [ "$(workers | wc -l)" -ge 2 ]; }
check "--soak: the workers start" eventually has_workers
kill -INT "$GROUP"
check "--soak: SIGINT ends it" command_ends
check "--soak: SIGINT: exit 1" exits 1
check "--soak: SIGINT: no case held" stdout_has '^0 held, 0 did not, 0 skipped'
check "--soak: SIGINT: no process is left" eventually no_process_left

e2e_end
