#!/bin/bash
# tests/e2e/big.sh - a model larger than each session's cap: 804 MiB of Q4_0 in
# the shape of Llama 3.2 1B over four sessions of 300 MiB.  Not part of make check
# (but of make check-big), because it writes 850 MB.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
big=$T/1b.gguf
ARGS=(-m "$big" --ctx 512 -p "In the beginning" -n 8 --temp 0)

"$MKGGUF" 1b q4_0 "$big" >/dev/null

check_success "four sessions of 300 MiB" \
    run "${ARGS[@]}" -s 4*cpu,cap=300MiB --json
cp "$OUT" "$T/four.json"
check "each peak is below its cap and close to its plan" "$PYTHON" -c '
import json, sys
for s in json.load(open(sys.argv[1]))["sessions"]:
    print(s["name"], s["cap"], s["planned"], s["peak"])
    assert s["peak"] <= s["cap"]
    assert abs(s["peak"] - s["planned"]) <= max(0.02 * s["planned"], 4 << 20)
    assert s["unaccounted"] <= max(0.02 * s["planned"], 4 << 20)
' "$T/four.json"
check_success "one session without a cap" run "${ARGS[@]}" -s cpu --json
check "the same text and the same logits" "$PYTHON" -c '
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert a["text"] == b["text"] and a["logits_hash"] == b["logits_hash"]
' "$T/four.json" "$OUT"
check_refusal "three sessions of 300 MiB" 3 'what would fit: 4 sessions' \
    run "${ARGS[@]}" -s 3*cpu,cap=300MiB
check_refusal "one session of 300 MiB" 3 'bytes short' \
    run "${ARGS[@]}" -s cpu,cap=300MiB
e2e_end
