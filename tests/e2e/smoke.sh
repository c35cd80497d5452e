#!/bin/bash
# tests/e2e/smoke.sh - the whole path in a few runs, for tiers too slow for the
# other scripts (user emulation, TSan).
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }

check_success "one session" run -m "$MODEL" -s cpu -p "In the beginning" -n 4 \
    --temp 0 --ctx 64
text=$(cat "$OUT") hash=$(hash_of)
check "run prints text" test -n "$text"
check_success "four sessions from the config" \
    run -c "$DEMO" -p "In the beginning" \
    -n 4 --temp 0 --ctx 64 --batch 3
check "four sessions generate the same text" equal "$(cat "$OUT")" "$text"
check "four sessions give the same logits" equal "$(hash_of)" "$hash"
check "the table has a row for each of the four sessions" \
    test "$(grep -c '^cpu[0-3] .* [-+][0-9.]* [a-zA-Z]' "$ERR")" -eq 4
check_success "plan" plan -c "$DEMO" --json
check "plan --json has four sessions" "$PYTHON" -c \
    'import json, sys; assert len(json.load(open(sys.argv[1]))["sessions"]) == 4' \
    "$OUT"
check_success "tokenize" tokenize -m "$MODEL" -p "And God said"
check_success "detokenize" detokenize -m "$MODEL" $(cat "$OUT")
check "detokenize restores the text" stdout_has "^And God said$"
check_success "quantize" quantize "$MODEL" "$T/q4_0.gguf" Q4_0 --threads 2
check "quantize writes the same file on every machine" \
    equal "1296689804 3016608" \
    "$(cksum <"$T/q4_0.gguf")"
check_refusal "no model" 4 "no-such.gguf" run -m no-such.gguf -p hello
e2e_end
