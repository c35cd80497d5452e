#!/bin/bash
# tests/e2e/hexagon_fastrpc.sh - the demo model over Hexagon sessions that are
# reached through libcdsprpc.so, for which a stand-in is loaded: the CPU's text,
# errors by name, a domain that is lost.  Not silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
EMULATED=1

command -v qemu-hexagon >/dev/null || e2e_skip "there is no qemu-hexagon"
[ -e "$(dirname "$BIN")/hexagon-domain" ] ||
    e2e_skip "hexagon-domain was not built (clang-14 and lld-14)"
STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/libcdsprpc.so" ] || e2e_skip "the stand-in was not built"

# The module for a DSP: it asks the DSP's system for its queue and for nothing
# else, and has the one name that FastRPC calls.
check "the module stands on its own" "$PYTHON" - \
    "$(dirname "$BIN")"/libstraddle-domain-v*.so <<-'END'
	import struct, sys
	f = open(sys.argv[1], 'rb').read()
	assert f[:5] == b'\x7fELF\x01'
	shoff, = struct.unpack_from('<I', f, 32)
	size, n = struct.unpack_from('<HH', f, 46)
	sec = [struct.unpack_from('<10I', f, shoff + i * size) for i in range(n)]
	dyn = next(s for s in sec if s[1] == 11)
	text = f[sec[dyn[6]][4]:]
	have, want = set(), set()
	for at in range(dyn[4] + 16, dyn[4] + dyn[5], 16):
	    name, _, _, _, _, shndx = struct.unpack_from('<IIIBBH', f, at)
	    (have if shndx else want).add(text[name:text.index(b'\0', name)])
	assert have == {b'straddle_skel_handle_invoke'}, have
	assert want == {b'dspqueue_' + x for x in
	    (b'import', b'read_noblock', b'write', b'close')}, want
	END

works "the CPU" run -m "$MODEL" -s cpu -p "In the beginning" -n 12 \
    --temp 0 --ctx 128
text=$(cat "$OUT")
refuses "without the library" 1 'looked for libcdsprpc.so: .*packages' \
    run -m "$MODEL" -s hexagon,port=fastrpc -p "In the beginning" -n 2 \
    --ctx 128

export LD_LIBRARY_PATH=$STANDIN
works "two sessions through the library" run -m "$MODEL" -s 2*hexagon \
    -p "In the beginning" -n 12 --temp 0 --ctx 128
check "the CPU's text" same "$(cat "$OUT")" "$text"
check "what each did is said" \
    test "$(grep -Ec '^hexagon[01]: [0-9]+ operations on hexagon' "$ERR")" -eq 2
works "hexagon, cpu, the emulator's own" run -m "$MODEL" -s hexagon -s cpu \
    -s hexagon,port=emulated -p "In the beginning" -n 12 --temp 0 --ctx 128
check "the same text" same "$(cat "$OUT")" "$text"
works "devices" devices --json
check "limits as the library tells them, or by trying" "$PYTHON" - "$OUT" \
    <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	h = d['hexagon']
	assert h['found'] and 'untested on silicon' in h['reason'], h
	total = h['limits']['total_bytes']
	assert 3 << 30 < total['value'] < 0xe0000000, total
	assert 'fastrpc_mmap refused' in total['from']
	assert h['limits']['hexagon_version']['value'] == 0x68
	END

export STANDIN_REFUSE=remote_handle64_open=0x72
refuses "a refused step, with call, code and remedy" 1 \
    'remote_handle64_open failed with 0x72 .the DSP refuses.*DSP_LIBRARY_PATH' \
    run -m "$MODEL" -s hexagon -p "In the beginning" -n 2 --ctx 128
unset STANDIN_REFUSE

# A process on the other side that dies: its notification names it, and the
# text goes on.
works "a longer text" run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
long=$(cat "$OUT")
straddle_bg run -m "$MODEL" -s htp9=hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
domain() { pgrep -g "$GROUP" -f hexagon-domain | head -n 1; }
generating() { [ -s "$OUT" ]; }
check "it generates" in_time generating
check "there is a process to kill" kill -KILL "$(domain)"
check "the run ends" finishes
check "well" test "$RC" -eq 0
check "the session and its end are named" \
    says 'htp9: its Hexagon domain died of an exception'
check "the same text" same "$(cat "$OUT")" "$long"
e2e_end
