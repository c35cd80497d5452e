#!/bin/bash
# tests/e2e/hexagon_fastrpc.sh - the demo model over Hexagon sessions behind
# libcdsprpc.so, with a stand-in for that library: the text of the CPU, error
# messages, a lost domain.  Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
EMULATED=1

command -v qemu-hexagon >/dev/null || e2e_skip "qemu-hexagon is not installed"
[ -e "$(dirname "$BIN")/hexagon-domain" ] ||
    e2e_skip "hexagon-domain was not built (clang-14 and lld-14)"
STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/libcdsprpc.so" ] || e2e_skip "the stand-in was not built"

# The DSP's module may import the queue's functions only, and must export the one
# function that FastRPC calls.
check "the DSP module imports only dspqueue and exports one function" \
    "$PYTHON" - \
    "$(dirname "$BIN")"/libstraddle-domain-v*.so <<-'END'
	import struct, sys
	f = open(sys.argv[1], 'rb').read()
	assert f[:5] == b'\x7fELF\x01'
	shoff, = struct.unpack_from('<I', f, 32)
	size, n = struct.unpack_from('<HH', f, 46)
	sec = [struct.unpack_from('<10I', f, shoff + i * size) for i in range(n)]
	dyn = next(s for s in sec if s[1] == 11)
	text = f[sec[dyn[6]][4]:]
	defined, imported = set(), set()
	for at in range(dyn[4] + 16, dyn[4] + dyn[5], 16):
	    name, _, _, _, _, shndx = struct.unpack_from('<IIIBBH', f, at)
	    (defined if shndx else imported).add(text[name:text.index(b'\0', name)])
	assert defined == {b'straddle_skel_handle_invoke'}, defined
	assert imported == {b'dspqueue_' + x for x in
	    (b'import', b'read_noblock', b'write', b'close')}, imported
	END

check_success "a run on the CPU" \
    run -m "$MODEL" -s cpu -p "In the beginning" -n 12 \
    --temp 0 --ctx 128
text=$(cat "$OUT")
check_refusal "port=fastrpc without libcdsprpc.so" \
    1 'looked for libcdsprpc.so: .*packages' \
    run -m "$MODEL" -s hexagon,port=fastrpc -p "In the beginning" -n 2 \
    --ctx 128

export LD_LIBRARY_PATH=$STANDIN
check_success "two sessions through the library" run -m "$MODEL" -s 2*hexagon \
    -p "In the beginning" -n 12 --temp 0 --ctx 128
check "two sessions generate the CPU's text" equal "$(cat "$OUT")" "$text"
check "each session's operations are reported" \
    test "$(grep -Ec '^hexagon[01]: [0-9]+ operations on hexagon' "$ERR")" -eq 2
check_success "fastrpc, cpu and emulated in one pipeline" \
    run -m "$MODEL" -s hexagon -s cpu \
    -s hexagon,port=emulated -p "In the beginning" -n 12 --temp 0 --ctx 128
check "fastrpc, cpu and emulated generate the CPU's text" \
    equal "$(cat "$OUT")" "$text"
# Its memory is not coherent: a missing flush would be a wrong number.
check_success "devices --verify" devices --verify
check "every operation of a domain is right through the library" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong, 0 not tested, '
check_success "devices --json" devices --json
check "devices reports the library's limits and those probed" \
    "$PYTHON" - "$OUT" \
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
check_refusal "a refused call: the error names it, its code and a remedy" 1 \
    'remote_handle64_open failed with 0x72 .the DSP refuses.*DSP_LIBRARY_PATH' \
    run -m "$MODEL" -s hexagon -p "In the beginning" -n 2 --ctx 128
unset STANDIN_REFUSE

# The remote process dies: the library's notification leads to a loss, and the text
# goes on.
check_success "60 tokens, undisturbed" \
    run -m "$MODEL" -s hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
long=$(cat "$OUT")
straddle_bg run -m "$MODEL" -s htp9=hexagon --ctx 128 --temp 0 \
    -p "In the beginning" -n 60
domain() { pgrep -g "$GROUP" -f hexagon-domain | head -n 1; }
generating() { [ -s "$OUT" ]; }
check "text is printed while it is generated" eventually generating
check "the remote process can be killed" kill -KILL "$(domain)"
check "a killed remote process: the run ends" command_ends
check "a killed remote process: exit 0" test "$RC" -eq 0
check "a killed remote process: the error names session and cause" \
    stderr_has 'htp9: its Hexagon domain died of an exception'
check "a killed remote process: the same text" equal "$(cat "$OUT")" "$long"
e2e_end
