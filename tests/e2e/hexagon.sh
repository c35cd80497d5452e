#!/bin/bash
# tests/e2e/hexagon.sh - the demo model over emulated Hexagon domains: the
# CPU's text, the same logits however it is split, a reason for everything
# that the host does.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
EMULATED=1
CONF=$TESTS/../config/hexagon-emulated.conf

command -v qemu-hexagon >/dev/null || e2e_skip "there is no qemu-hexagon"
[ -e "$(dirname "$BIN")/hexagon-domain" ] ||
    e2e_skip "hexagon-domain was not built (clang-14 and lld-14)"

hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }

works "the CPU" run -m "$MODEL" -s cpu -p "In the beginning" -n 12 \
    --temp 0 --ctx 128
text=$(cat "$OUT")
works "four domains from the config" run -c "$CONF" --ctx 128 --temp 0 \
    -p "In the beginning" -n 12
check "the CPU's text" same "$(cat "$OUT")" "$text"
check "a table of four sessions" \
    test "$(grep -c '^htp[0-3] *hexagon .* [+-]' "$ERR")" -eq 4
hash=$(hash_of)
check "a column for emulators" says '^session .* runtime emulator  *peak '
check "and what each measured" test "$(grep -Ec '^htp[0-3]: in the domain [0-9.]+ .* its emulator: [0-9.]+ planned, [0-9.]+ measured' "$ERR")" -eq 4
check "what each domain did is said" \
    test "$(grep -Ec '^htp[0-3]: [0-9]+ operations on hexagon, [0-9]+ on the CPU; a batch: [0-9.]+ messages, ' "$ERR")" -eq 4
check "one message a batch, one more for logits" \
    says '^htp1: .* a batch: 1\.0 messages'
works "one domain, other batches" run -m "$MODEL" -s hexagon --ctx 128 \
    --temp 0 -p "In the beginning" -n 12 --batch 4
check "the same logits" same "$(hash_of)" "$hash"
# What an emulator takes beside its domain's bytes is known and accounted for,
# whatever holds the caps; of the program that all of them share no group is
# charged a byte.
accounted()
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
works "hexagon, cpu, hexagon" "${MIXED[@]}" --json
check "the same text, every byte accounted for" accounted
if without_groups; then
	works "the same without groups" "${MIXED[@]}" --json
	with_groups
	check "the same text, every byte accounted for, without groups" accounted
fi
works "a KV cache of Q8_0" run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 4 --kv-type q8_0

# --- losses: named, a fresh domain, and the text goes on ---

LONG=(run -m "$MODEL" -s htp8=hexagon -s htp9=hexagon --ctx 128 --temp 0
    -p "In the beginning" -n 16)
works "a longer text" "${LONG[@]}"
long=$(cat "$OUT")
hash=$(hash_of)

# mended WHAT WORDS: it went on as if nothing had been, after one loss.
mended()
{
	check "$1: exit 0" exits 0
	check "$1: nobody left" in_time ended
	check "$1: it is named" says "^straddle: session $2; restarting it \(loss 1 of"
	check "$1: one loss" same 1 "$(grep -c '; restarting it' "$ERR")"
	check "$1: the same text" same "$(cat "$OUT")" "$long"
	check "$1: the same logits" same "$(hash_of)" "$hash"
}

# The domain of the session that was started last, and what becomes of it.
domain() { pgrep -g "$GROUP" -n -f hexagon-domain; }
generating() { [ "$(wc -c <"$OUT")" -gt 4 ]; }
struck()	# SIGNAL
{
	straddle_bg "${LONG[@]}"
	check "$1: it generates" in_time generating
	victim=$(domain)
	check "$1: there is a domain" kill "-$1" "$victim"
	check "$1: the run ends" finishes
}

struck KILL
mended "a domain that is killed" \
    'htp[89]: its Hexagon domain was killed by signal 9 \(Killed\)'
struck SEGV
mended "a domain that crashes" \
    'htp[89]: its Hexagon domain was killed by signal 11 .*'
# No call of the worker's can end it, nor does it end by itself.
struck STOP
mended "a domain that hangs" 'htp[89]: its device hexagon hangs: nothing has moved for [0-9.]+ s, .* \(its worker is asleep\)'
check "a domain that hangs: it is gone" in_time test ! -d "/proc/$victim"

# What befalls one domain, once (tests/tools/faulty.c).
if [ -x "$FAULTY" ]; then
	export STRADDLE_FAULT STRADDLE_FAULT_FILE=$T/fault
	befallen()
	{
		STRADDLE_FAULT=worker:$1
		printf '%8s' '' | tr ' ' '\0' >"$STRADDLE_FAULT_FILE"
		BIN=$FAULTY straddle "${LONG[@]}"
	}
	befallen leave:9
	mended "a domain that leaves" \
	    'htp[89]: its Hexagon domain left with status 0'
	befallen refuse:2
	mended "a map that is refused" 'htp[89]: .*: its Hexagon domain cannot map 4294963200 bytes: its address space is full: [0-9]+ MiB more is all that its device hexagon gives .*'
	befallen late:2
	mended "an answer that does not come" \
	    'htp[89]: its Hexagon domain does not answer'
	unset STRADDLE_FAULT STRADDLE_FAULT_FILE
fi

# More than a domain can map: refused by the plan with what the probe found.
refuses "a context beyond the domain" 3 \
    'its cap is (5[0-9]|6[0-3])\.0 MiB, the limit of its device hexagon' \
    run -m "$MODEL" -s hexagon,domain=64MiB,cap=1GiB --ctx 16384 -p x -n 1
# A sanitizer takes some 27 MiB, and not always the same.
SIZE=64MiB
! sanitized || SIZE=96MiB
works "a domain of another size" run -m "$MODEL" \
    -s "hexagon,domain=$SIZE" --ctx 128 --temp 0 -p "In the beginning" -n 12
check "the same text" same "$(cat "$OUT")" "$text"
works "explain" explain -c "$CONF" --json
check "two operations a pipeline fall back for good reason" "$PYTHON" - "$OUT" \
    <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	cpu = [x for x in o['ops'] if x['where'] == 'cpu']
	assert {x['op'] for x in cpu} == {'get_rows', 'rope_table'}, cpu
	assert all(x['reason'] for x in cpu)
	assert all(s['device_ops'] > 20 for s in o['summary'])
	END
# Loops that are not pipelined any more, or whose sums went to memory.
counts() {
	"$PYTHON" "$TESTS/tools/hexagon_counts.py" --domain \
	    "$(dirname "$BIN")/hexagon-domain" >/dev/null || [ $? -eq 77 ]
}
check "products a packet" counts

works "devices" devices --json
check "limits by trying" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	h = d['hexagon']
	assert h['found'], h
	total = h['limits']['total_bytes']
	assert 3 << 30 < total['value'] < 0xe0000000, total
	assert 'refused' in total['from']
	# What a board would need is told in any case.
	assert h['checks'] and all(c['text'] for c in h['checks']), h
	END
e2e_end
