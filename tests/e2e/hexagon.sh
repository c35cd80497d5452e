#!/bin/bash
# tests/e2e/hexagon.sh - the demo model over emulated Hexagon domains: the text
# of the CPU, the same logits for every split, a reason for each operation that
# falls back to the host.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
EMULATED=1
CONF=$TESTS/../config/hexagon-emulated.conf

command -v qemu-hexagon >/dev/null || e2e_skip "qemu-hexagon is not installed"
[ -e "$(dirname "$BIN")/hexagon-domain" ] ||
    e2e_skip "hexagon-domain was not built (clang-14 and lld-14)"

hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }

check_success "a run on the CPU" \
    run -m "$MODEL" -s cpu -p "In the beginning" -n 12 \
    --temp 0 --ctx 128
text=$(cat "$OUT")
check_success "four domains from the config" run -c "$CONF" --ctx 128 --temp 0 \
    -p "In the beginning" -n 12
check "four domains generate the CPU's text" equal "$(cat "$OUT")" "$text"
check "the table has a row for each of the four sessions" \
    test "$(grep -c '^htp[0-3] *hexagon ' "$ERR")" -eq 4
hash=$(hash_of)
check "the table has a column for emulators" \
    stderr_has '^session .* emulator  *peak '
check "each domain's memory and emulator are reported" \
    test "$(grep -Ec '^htp[0-3]: in the domain [0-9.]+ .* its emulator: [0-9.]+ planned, [0-9.]+ measured' "$ERR")" -eq 4
check "each domain's operations and messages are reported" \
    test "$(grep -Ec '^htp[0-3]: [0-9]+ operations on hexagon, [0-9]+ on the CPU; per batch: [0-9.]+ messages, ' "$ERR")" -eq 4
check "a domain in the middle gets one message per batch" \
    stderr_has '^htp1: .* per batch: 1\.0 messages'
check_success "one domain, --batch 4" run -m "$MODEL" -s hexagon --ctx 128 \
    --temp 0 -p "In the beginning" -n 12 --batch 4
check "one domain, --batch 4: the same logits" equal "$(hash_of)" "$hash"
# An emulator's memory beyond its domain's bytes is planned and accounted for, with
# every way to enforce caps.  No group is charged for the program file that all
# emulators share.
is_accounted_for()
{
	"$PYTHON" - "$OUT" "$text" 2>>"$ERR" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	assert o['text'] + '\n' == sys.argv[2] + '\n', o['text']
	for s in o['sessions']:
	    keys = ('emulator_measured', 'emulator_files', 'in_domain')
	    if s['device'] == 'cpu':
	        assert s['emulator'] == 0, s
	        assert all(s[k] is None for k in keys), s
	        continue
	    held = s['weights'] + s['kv'] + s['compute']
	    own = s['emulator_measured']
	    assert 0 < s['in_domain'] <= held, s
	    assert 2 << 20 < s['emulator_files'], s
	    if s['peak_has_shared']:
	        own += s['emulator_files']
	    assert 2 << 20 < own <= s['emulator'], s
	    assert s['emulator'] - own <= 3 << 20, s
	    assert abs(s['unaccounted']) <= max(s['peak'] // 100, 4 << 20), s
	END
}
MIXED=(run -m "$MODEL" -s hexagon -s cpu -s hexagon --ctx 128 --temp 0
    -p "In the beginning" -n 12)
check_success "hexagon, cpu, hexagon" "${MIXED[@]}" --json
check "hexagon, cpu, hexagon: the same text, every byte accounted for" \
    is_accounted_for
if hide_groups; then
	check_success "hexagon, cpu, hexagon without groups" \
	    "${MIXED[@]}" --json
	restore_groups
	check "without groups: the same text, every byte accounted for" \
	    is_accounted_for
fi
check_success "a Q8_0 KV cache in a domain" \
    run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 4 --kv-type q8_0

# --- losses: the error names the domain, a new one takes over, the text goes on ---

LONG=(run -m "$MODEL" -s htp8=hexagon -s htp9=hexagon --ctx 128 --temp 0
    -p "In the beginning" -n 40)
check_success "40 tokens over two domains, undisturbed" "${LONG[@]}"
long=$(cat "$OUT")
hash=$(hash_of)

# check_recovery LABEL PATTERN: one loss, whose message matches, and the result of
# an undisturbed run.
check_recovery()
{
	check "$1: exit 0" exits 0
	check "$1: no process is left" eventually no_process_left
	check "$1: the error names the session and the cause" \
	    stderr_has "^straddle: session $2; restarting it \(loss 1 of"
	check "$1: one loss" equal 1 "$(grep -c '; restarting it' "$ERR")"
	check "$1: the same text" equal "$(cat "$OUT")" "$long"
	check "$1: the same logits" equal "$(hash_of)" "$hash"
}

# Pid of the domain that was started last.
domain() { pgrep -g "$GROUP" -n -f hexagon-domain; }
generating() { [ "$(wc -c <"$OUT")" -gt 4 ]; }
signal_domain()	# SIGNAL
{
	straddle_bg "${LONG[@]}"
	check "SIG$1: text is printed" eventually generating
	victim=$(domain)
	check "SIG$1: a domain can be signalled" kill "-$1" "$victim"
	check "SIG$1: the run ends" command_ends
}

for signal in $(sample 1 KILL SEGV); do
	signal_domain $signal
	check_recovery "a domain that ends by SIG$signal" \
	    "htp[89]: its Hexagon domain was killed by signal $(kill -l $signal) .*"
done
# A stopped domain neither answers nor ends; only the watchdog can end it.
signal_domain STOP
check_recovery "a domain that hangs" \
    'htp[89]: its device hexagon hangs: nothing has moved for [0-9.]+ s, .* \(its worker is asleep\)'
check "a domain that hangs: it is killed" eventually test ! -d "/proc/$victim"

# One fault in one domain, once (tests/tools/faulty.c).
if [ -x "$FAULTY" ]; then
	export STRADDLE_FAULT STRADDLE_FAULT_FILE=$T/fault
	run_with_fault()
	{
		STRADDLE_FAULT=worker:$1
		printf '%8s' '' | tr ' ' '\0' >"$STRADDLE_FAULT_FILE"
		BIN=$FAULTY straddle "${LONG[@]}"
	}
	run_with_fault exit:9
	check_recovery "a domain that exits" \
	    'htp[89]: its Hexagon domain left with status 0'
	run_with_fault map-too-large:2
	check_recovery "a map that is refused" \
	    'htp[89]: .*: its Hexagon domain cannot map 4294963200 bytes: its address space is full: [0-9]+ MiB more is all that its device hexagon gives .*'
	run_with_fault no-answer:2
	check_recovery "a domain that does not answer" \
	    'htp[89]: its Hexagon domain does not answer'
	unset STRADDLE_FAULT STRADDLE_FAULT_FILE
fi

# The plan refuses more than a domain can map and names the limit that was probed.
check_refusal "a context too large for the domain" 3 \
    'cap (5[0-9]|6[0-3])\.0 MiB \(limit of its device hexagon' \
    run -m "$MODEL" -s hexagon,domain=64MiB,cap=1GiB --ctx 16384 -p x -n 1
# A sanitizer takes about 27 MiB of the domain, and the amount varies.
SIZE=64MiB
! sanitized || SIZE=96MiB
check_success "a domain of $SIZE" run -m "$MODEL" \
    -s "hexagon,domain=$SIZE" --ctx 128 --temp 0 -p "In the beginning" -n 12
check "a domain of $SIZE: the same text" equal "$(cat "$OUT")" "$text"
check_success "explain of one domain" explain -m "$MODEL" -s h=hexagon
check "explain lists what its worker may do besides" \
    stdout_has 'for its device its confined worker may .*\(emulator\)'
check_success "explain of four domains" explain -c "$CONF" --json
check "only get_rows and rope_table fall back, with a reason" \
    "$PYTHON" - "$OUT" \
    <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	assert o['summary'][0]['rights'] == ['emulator', 'dsp'], o['summary']
	cpu = [x for x in o['ops'] if x['where'] == 'cpu']
	assert {x['op'] for x in cpu} == {'get_rows', 'rope_table'}, cpu
	assert all(x['reason'] for x in cpu)
	assert all(s['device_ops'] > 20 for s in o['summary'])
	END
# Types that a mix of K-quants falls back to where a row's length is no multiple
# of 256, and those that old files have.
for type in $(sample 1 Q4_1 Q5_0 Q5_1 IQ4_NL); do
	check_success "$type: quantize" quantize -q "$MODEL" "$T/$type.gguf" $type
	check_success "$type: explain" explain -m "$T/$type.gguf" \
	    -s 2*hexagon --json
	check "$type: every matrix is in a domain" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	ops = json.load(open(sys.argv[1]))['ops']
	assert any(x['op'] == 'matmul' for x in ops), {x['op'] for x in ops}
	cpu = {x['op'] for x in ops if x['where'] == 'cpu'}
	assert cpu == {'get_rows', 'rope_table'}, cpu
	END
	RUN=(run -m "$T/$type.gguf" --ctx 128 --temp 0 -p "In the beginning" -n 8)
	check_success "$type: one domain" "${RUN[@]}" -s hexagon
	hash=$(hash_of)
	check_success "$type: two domains, --batch 3" "${RUN[@]}" \
	    -s 2*hexagon --batch 3
	check "$type: the same logits" equal "$(hash_of)" "$hash"
done

# Fails if the compiler no longer pipelines a loop, or spills its accumulators.
has_expected_counts() {
	"$PYTHON" "$TESTS/tools/hexagon_counts.py" --domain \
	    "$(dirname "$BIN")/hexagon-domain" >/dev/null || [ $? -eq 77 ]
}
check "the domain's inner loops have the expected products per packet" \
    has_expected_counts

check_success "devices --json" devices --json
check "devices reports the domain's limits as probed" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	h = d['hexagon']
	assert h['found'], h
	total = h['limits']['total_bytes']
	assert 3 << 30 < total['value'] < 0xe0000000, total
	assert 'refused' in total['from']
	# Requirements of a board are reported on every machine.
	assert h['checks'] and all(c['text'] for c in h['checks']), h
	END
e2e_end
