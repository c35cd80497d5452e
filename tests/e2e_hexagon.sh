#!/bin/bash
# tests/e2e_hexagon.sh - the demo model over emulated Hexagon domains: the
# CPU's text, the same logits however it is split, a reason for everything
# that the host does.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e.sh"
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
export STRADDLE_CGROUP_ROOT=/nowhere
works "the same without groups" "${MIXED[@]}" --json
unset STRADDLE_CGROUP_ROOT
check "the same text, every byte accounted for, without groups" accounted
works "a KV cache of Q8_0" run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 4 --kv-type q8_0

# A domain that is killed: named, made anew, and the text goes on.
works "a longer text" run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
long=$(cat "$OUT")
straddle_bg run -m "$MODEL" -s htp9=hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
domain() { pgrep -g "$GROUP" -f hexagon-domain | head -n 1; }
generating() { [ -s "$OUT" ]; }
check "it generates" in_time generating
check "there is a domain to kill" kill -KILL "$(domain)"
check "the run ends" finishes
check "well" test "$RC" -eq 0
check "the session and the signal are named" \
    says 'htp9: its Hexagon domain was killed by signal 9'
check "the same text" same "$(cat "$OUT")" "$long"

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
works "devices" devices --json
check "limits by trying" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	h = d['hexagon']
	assert h['found'], h
	total = h['limits']['total_bytes']
	assert 3 << 30 < total['value'] < 0xe0000000, total
	assert 'refused' in total['from']
	END
e2e_end
