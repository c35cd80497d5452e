#!/bin/bash
# tests/e2e/ascend_shapes.sh - shapes of the model at which an Ascend processor is
# wrong, fails, ends its process or computes a row by its company: they run on the CPU,
# with the reason, and the logits are the same for every split, batch and port.  A
# start with another model tries only its new shapes.  The fastest way for each shape,
# by the stand-in's model of times.
# With the stand-ins for CANN's libraries.  Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/libascendcl.so" ] || e2e_skip "the stand-ins were not built"
export LD_LIBRARY_PATH=$STANDIN STRADDLE_ASCEND STRADDLE_ASCEND_ROOT=$T/root
ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

on()	# [SWITCH...]
{
	STRADDLE_ASCEND=soc=910B,report=$T/report
	for switch; do STRADDLE_ASCEND=$STRADDLE_ASCEND,$switch; done
	true >"$T/report"
	rm -rf "$T/.cache"
}
hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }
# The first process is the probe.
tasks() { sed -n '1s/.* \([0-9]*\) tasks,.*/\1/p' "$T/report"; }

# unfit FAULT OP REASON: these operations run on the CPU, and no others than without
# the fault and those that depend on them; the same logits for each split.
unfit()
{
	on "shape=$1"
	check_success "$1" "${ARGS[@]}" -s ascend
	local text hash

	text=$(cat "$OUT") hash=$(hash_of)
	check "$1: the library is not misused" eval \
	    '! grep -v "; 0 misuses" "$T/report"'
	check_success "$1: two sessions" "${ARGS[@]}" -s ascend \
	    -s ascend,port=1 --batch $((1 + RANDOM % 12))
	check "$1: two sessions: the same text" equal "$(cat "$OUT")" "$text"
	check "$1: two sessions: the same logits" equal "$(hash_of)" "$hash"
	check_success "$1: explain" explain -m "$MODEL" -s ascend --json
	check "$1: the reason" "$PYTHON" - "$OUT" "$2" "$3" <<-'END'
		import json, sys
		ops = json.load(open(sys.argv[1]))['ops']
		ops = [x for x in ops if sys.argv[3] in x['reason']]
		assert ops and all(x['where'] == 'cpu' and x['op'] ==
		    sys.argv[2] for x in ops), ops
		END
}
# K and V; ffn_down.
unfit product:128x256:company matmul \
    'a row depends on others in products of 128 x 256'
unfit product:256x512:wrong matmul 'products of 256 x 512 are wrong'
unfit product:256x512:late matmul \
    'products of 256 x 512 fail on the processor with 507018'
unfit product:256x512:abort matmul \
    'the trial of products of 256 x 512 ends its process'
unfit RmsNorm:256:company rms_norm \
    'a row depends on others in norms of 256 numbers'
unfit RmsNorm:256:abort rms_norm \
    'the trial of norms of 256 numbers ends its process'
unfit Silu:512:wrong swiglu 'SwiGLU of 512 numbers is wrong'

# --- the fastest way ---

FLOATS=missing=WeightQuantBatchMatmulV2+RmsNorm
on $FLOATS
check_success "equal ways" "${ARGS[@]}" -s ascend
floats_text=$(cat "$OUT") floats_hash=$(hash_of)
check_success "equal ways: explain" explain -m "$MODEL" -s ascend --json
check "equal ways: the first one is taken" eval \
    'stdout_has "\"aclnnMm of 16-bit" && ! stdout_has "aclnnMatmul|rows?:"'

# fastest SLOW TEXT [SWITCH]: explain names the way, and it has the same exact sums.
fastest()
{
	on $FLOATS "slow=$1" "${@:3}"
	check_success "slow $1: explain" explain -m "$MODEL" -s ascend --json
	check "slow $1: the fastest way" stdout_has "$2"
	check_success "slow $1" "${ARGS[@]}" -s ascend -s ascend,port=1 \
	    --batch $((1 + RANDOM % 12))
	check "slow $1: the same text" equal "$(cat "$OUT")" "$floats_text"
	check "slow $1: the same logits" equal "$(hash_of)" "$floats_hash"
	check "slow $1: the library is not misused" eval \
	    '! grep -v "; 0 misuses" "$T/report"'
	true >"$T/report"
	check_success "slow $1: again" plan -m "$MODEL" -s ascend,port=1
	check "slow $1: again: nothing is tried" equal "$(tasks)" 0
}
another()
{
	fastest Mm:200 '"aclnnMatmul of 16-bit floats, made from Q8_0, captured"'
}
layout()
{
	fastest ND:200 '"aclnnMm of 16-bit floats in FRACTAL_NZ, made from Q8_0'
}
twin()
{
	fastest Mm:400@1+Matmul:400@1 \
	    '"aclnnMm \(1 row: aclnnBatchMatMul\) of 16-bit'
}
near()
{
	fastest Mm:110 '"aclnnMm of 16-bit floats, made from Q8_0, captured"'
}
# All of them if FULL is set.
all=(another layout twin near)
[ -n "${FULL-}" ] || all=("${all[RANDOM % 4]}")
for one in "${all[@]}"; do
	$one
done
# A way whose graphs are wrong is not captured.
fastest Mm:400@1+Matmul:400@1 'aclnnBatchMatMul\) .*not captured' \
    graph-drops=BatchMatMul
# Wrong where the first way is slow; then where the first way is wrong.
fastest Mm:200 '"aclnnBatchMatMul of 16-bit floats' shape=Matmul:256:wrong
on $FLOATS shape=Mm:256:wrong
check_success "a way that is wrong at one shape" explain -m "$MODEL" \
    -s ascend --json
check "a way that is wrong at one shape: another takes it" eval \
    'stdout_has "\"aclnnMatmul of 16-bit" && stdout_has "\"aclnnMm of 16-bit"'
on $FLOATS slow=Mm:200 times=0
check_success "the host's clock" "${ARGS[@]}" -s ascend
check "the host's clock: the same logits" equal "$(hash_of)" "$floats_hash"

# --- what is said ---

on shape=product:128x256:wrong
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain counts the shapes" stdout_has \
    'to 16-bit floats, for products; 8 shapes of the model were tried'
check_success "devices" devices
check "devices counts them" eval 'tr -s " \n" "  " <"$OUT" | grep -q \
    "shapes of models not ok: 8 were tried by earlier starts; 1 of them run on"'
check_success "devices --json" devices --json
check "devices --json counts them" stdout_has '8 were tried by earlier starts'

# --- another model ---

make_model other q8_0
true >"$T/report"
check_success "another model" plan -m "$T/other.gguf" -s ascend
new=$(tasks)
check "another model: its shapes are tried" test "$new" -gt 0
true >"$T/report"
check_success "another model, again" plan -m "$T/other.gguf" -s ascend
check "another model, again: nothing is tried" equal "$(tasks)" 0
true >"$T/report"
check_success "the first model, again" explain -m "$MODEL" -s ascend --json
check "the first model, again: nothing is tried" equal "$(tasks)" 0
check "the first model, again: the reason" stdout_has \
    'products of 128 x 256 are wrong'
on
check_success "no earlier start" plan -m "$T/other.gguf" -s ascend
check "no earlier start: the ways are tried, too" test "$(tasks)" -gt "$new"
e2e_end
