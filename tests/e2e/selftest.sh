#!/bin/bash
# tests/e2e/selftest.sh - a session whose device computes wrong results does not
# start, and says why (tests/tools/faulty.c).
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

[ -x "$FAULTY" ] || e2e_skip "$FAULTY is not built"

check_success "a right device" run -m "$MODEL" -p In -n 1 -v
check "a right device: its worker says what was tested" stderr_has \
    'cpu0: device cpu computes right: [0-9]+ operations tested in [0-9.]+ ms, largest error [0-9]'
check_success "a device that computes nothing, on purpose" \
    run -m "$MODEL" -p In -n 1 -s cpu -s null
check "a device that computes nothing says so" stderr_has \
    'null0: device null is not tested: it computes nothing, on purpose'

# --- every operation and type ---

check_success "devices --verify" devices --verify
check "devices --verify: an operation with weights of a type" stdout_has \
    '^  matmul Q4_K +ok: error [0-9.e-]+, limit 0.12, [0-9]+ numbers$'
check "devices --verify: an operation without" stdout_has \
    '^  rope +ok: error [0-9.e-]+, limit 0.0078, [0-9]+ numbers$'
check "devices --verify: a whole layer" stdout_has '^  layer +ok: error '
check "devices --verify: null" stdout_has \
    '^  all +not claimed: it computes nothing, on purpose$'
check "devices --verify: the sum" stdout_has \
    '^verified: [0-9]+ ok, 0 wrong, 0 not tested, [0-9]+ not claimed$'
check "devices --verify has at most 80 columns" is_blank \
    "$(grep -E '.{81}' "$OUT" | grep -vE '^ *[^ ]+$')"
check_success "devices --verify --json" devices --verify --json
check "devices --verify --json: every operation of the CPU is right" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	v = d['cpu']['verified']
	assert len(v) > 60 and all(x['verdict'] == 'ok' for x in v)
	assert all(0 <= x['error'] <= x['limit'] and x['numbers'] > 0
	           for x in v)
	ops = {s['op'] for s in d['cpu']['supports']}
	assert ops == {x['op'] for x in v} - {'layer'}, ops
	assert all('verified' in x or not x['found'] for x in d.values())
	END
check_success "devices without --verify" devices --json
check "devices without --verify tests nothing" equal 0 \
    "$(grep -c '"verified"' "$OUT")"

# The fault begins in the middle of the test.
export STRADDLE_FAULT=worker:wrong-answer:200
BIN=$FAULTY straddle devices --verify
check "devices --verify of a wrong device: exit 1" exits 1
check "devices --verify of a wrong device: numbers" stdout_has \
    '^  matmul Q8_0 +WRONG: [-0-9.e+naif]+ instead of [-0-9.e]+'
check "devices --verify of a wrong device: its kind" stderr_has \
    '^straddle: [0-9]+ of [0-9]+ results are wrong, on device cpu'
BIN=$FAULTY straddle devices --verify --json
check "devices --verify --json of a wrong device: exit 1" exits 1
check "devices --verify --json of a wrong device: numbers" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = {x['kind']: x for x in json.load(open(sys.argv[1]))['devices']}
	wrong = [x for x in d['cpu']['verified'] if x['verdict'] == 'wrong']
	assert wrong and all(x['error'] is None or x['error'] > x['limit']
	                     for x in wrong)
	END

export STRADDLE_FAULT=worker:alloc:300
BIN=$FAULTY straddle devices --verify
check "devices --verify without memory: exit 1" exits 1
check "devices --verify without memory: why" stdout_has '^  all +FAILED: .*no memory'
check "devices --verify without memory: no device is called wrong" stderr_has \
    '^straddle: the test of device cpu.* failed, which says nothing about its results'
BIN=$FAULTY straddle devices --verify --json
check "devices --verify --json without memory" stdout_has '"verdict": "failed"'

# --- sessions ---

export STRADDLE_FAULT=worker:wrong-answer:1
BIN=$FAULTY check_refusal "a wrong device ends its session, without text" 1 \
    '^straddle: session cpu0: device cpu computes wrong results: in its self-test get_rows of Q8_0 gives 0 instead of [-0-9.]+, an error of [0-9.]+ .*straddle devices --verify' \
    run -m "$MODEL" -p In -n 1 -q
BIN=$FAULTY check_refusal "a wrong device of one session of three" 1 \
    '^straddle: session b: device cpu computes wrong results: ' \
    run -m "$MODEL" -p In -n 1 -q -s a=null -s b=cpu -s c=null

export STRADDLE_FAULT=worker:wrong-domain:1
BIN=$FAULTY straddle devices --json
if "$PYTHON" -c 'import json, sys
sys.exit(not [d for d in json.load(open(sys.argv[1]))["devices"]
              if d["kind"] == "hexagon" and d["found"]])' "$OUT"; then
	EMULATED=1
	BIN=$FAULTY check_refusal "a wrong domain ends its session" 1 \
	    '^straddle: session h: device hexagon computes wrong results: in its self-test matmul of Q6_K gives 0 instead of ' \
	    run -m "$MODEL" -p In -n 1 -q -s cpu -s h=hexagon,port=emulated
fi
e2e_end
