#!/bin/bash
# tests/e2e/stress.sh - straddle stress: some of its cases, quickly (all of them
# are make check-stress); one that does not hold is seen, and one that cannot be
# run here is not said to hold.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PAIR=(-m "$MODEL" -s a=cpu,cap=64MiB,threads=1 -s b=cpu,cap=64MiB,threads=1
    --ctx 256)
cases() { grep -c "^$1 " "$OUT"; }

works "--list" stress --list
check "at least fifteen cases" test "$(wc -l <"$OUT")" -ge 15
check "each once" nothing "$(sort "$OUT" | uniq -d)"
refuses "a case that there is not" 2 "there is no such case: .*--list" \
    stress "${PAIR[@]}" --only "no such case"

# some PATTERN...: each holds, and says how it went in numbers.
some()
{
	local only

	for only; do
		straddle stress "${PAIR[@]}" --only "$only" --json --seed 3
		check "$only: done, nobody left" is_success
		check "$only: it has the stable keys" has_keys stress
		check "$only: held, with numbers, peaks within caps" \
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

mapfile -t some < <(sample 4 'kill -9 of each worker in *' 'disk error*' \
    'impossible counters*' 'nonsense*' 'kill -9 of the coordinator' 'hundreds*')
some "${some[@]}"
if ! sanitized; then
	mapfile -t some < <(sample 3 'one byte*' 'every session full*' \
	    'kill -9*caps equal*' 'SIGSEGV of each worker in decode' \
	    'short reads*')
	some "${some[@]}"
fi

# With this seed, the first of all texts is drawn after others.
works "hundreds of short texts, the first one again" stress "${PAIR[@]}" \
    --only 'hundreds*' --seed 745692

# In $FAULTY, which is the program with a fault that STRADDLE_FAULT names.
with_fault() {
	local BIN=$FAULTY

	export STRADDLE_FAULT=coordinator:$1:1
	shift
	"$@"
	unset STRADDLE_FAULT
}

# A signal may come after the load, where others want the cores; the load is
# then repeated, and lasts longer.
with_fault stress-late some 'kill -9 of each worker in load'

# --- what is not so ---

with_fault stress-logits straddle stress "${PAIR[@]}" \
    --only 'SIGTERM of each worker in prefill'
check "other logits than expected: exit 1" exits 1
check "the case did not hold, and why" \
    prints '^BROKE +SIGTERM .*: a: other logits, [0-9a-f]{16} and not '
check "one of one" says '1 of 1 cases did not hold'

straddle stress "${PAIR[@]}" --only 'memory past the ledger' --json
check "memory past the ledger: done" is_success
check "stopped by the kernel, or not run, which is not to hold" \
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

if [ -z "${STRADDLE_CGROUP_ROOT-}" ] && ! sanitized && without_groups; then
	works "memory past the ledger, without groups" stress "${PAIR[@]}" \
	    --only 'memory past the ledger'
	check "refused, or not run" \
	    prints '^(held .*the kernel refused|skipped )'
	with_groups
fi

# --- over and over ---

works "--soak" stress "${PAIR[@]}" --soak 6
check "rounds, losses, and nothing that grew" \
    prints '^held +soak .* rounds .* losses.*descriptors ([0-9]+) to \1, '

with_fault stress-leak straddle stress "${PAIR[@]}" --soak 6
check "what grows is seen: exit 1" exits 1
check "and named" \
    prints "^BROKE +soak .*the coordinator's descriptors grew from [0-9]+ to "

straddle_bg stress "${PAIR[@]}" --soak 600
has_workers() { [ "$(workers | wc -l)" -ge 2 ]; }
check "at work" in_time has_workers
kill -INT "$GROUP"
check "interrupted: it ends" finishes
check "interrupted: exit 1, and nobody left" exits 1
check "interrupted: no case held" prints '^0 held, 0 did not, 0 skipped'
check "nobody left" in_time ended

e2e_end
