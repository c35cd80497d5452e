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
