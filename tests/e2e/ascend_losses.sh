#!/bin/bash
# tests/e2e/ascend_losses.sh - sessions on an Ascend processor lose tasks, calls and whole
# workers: the same text and logits, one loss, and a message that names the operation.
# Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

on 910B $FLOATS
first "a card" -s ascend

# Let an earlier start have tried everything, without the faults of numbered calls: the
# next probe makes none of these calls.
try_before()
{
	local all=$STRADDLE_ASCEND words

	IFS=, read -ra words <<<"$all"
	STRADDLE_ASCEND=
	for word in "${words[@]}"; do
		[[ $word == *@* ]] || STRADDLE_ASCEND+=$word,
	done
	straddle plan -m "$MODEL" -s ascend
	STRADDLE_ASCEND=$all
	true >"$T/report"
}

losses() { grep -c '; restarting it (loss' "$ERR" || true; }
loses_one()	# LABEL PATTERN ARGS...
{
	check_success "$1" "${ARGS[@]}" "${@:3}"
	check "$1: the same text" equal "$(cat "$OUT")" "$text"
	check "$1: the same logits" equal "$(hash_of)" "$hash"
	check "$1: the library is not misused" eval '! stderr_has misuse'
	check "$1: the message" stderr_has "$2"
	check "$1: one loss" equal 1 "$(losses)"
}
recovers()	# LABEL PATTERN SWITCH...
{
	on "${@:3}" "once=$T/$1" "${WITHOUT-missing=WeightQuantBatchMatmulV2+RmsNorm}"
	try_before
	loses_one "$1" "$2" -s ascend -s ascend
}
recovers late 'product with .*weight: .* failed with 507018, ACL_ERROR_RT_' \
    310B late=Mm:507018@60
# The fault is in K, while Q, K and V are in flight.
recovers middle 'product with .*attn_q.weight, .*attn_k.weight, .*attn_v.weight: ' \
    310B late=Mm:507018@58
recovers call 'session ascend[01]: product with .*: aclnnMm failed with 507000' \
    910B fail=aclnnMm:507000@60 capture=0
recovers named 'product with .*: .*aclopExecWithHandle failed with 507000' \
    310B ops=classic fail=aclopExecWithHandle:507000@60
recovers copy 'session ascend[01]: .*aclrtMemcpyAsync failed with 507000' \
    910B fail=aclrtMemcpyAsync:507000@90 capture=0
recovers graph 'captured product with .*: .*aclmdlRIExecuteAsync failed with 507' \
    910B fail=aclmdlRIExecuteAsync:507000@60
recovers 'late in a graph' \
    'product with .*ffn_gate.weight, .*ffn_up.weight: .* failed with 507018' \
    910B late=Mm:507018@75
recovers abort 'session ascend[01]: its worker was killed by signal 6' \
    910B abort=aclrtSynchronizeEventWithTimeout@40
[ -z "${FULL-}" ] || recovers hang 'failed with 507014, |device ascend hangs' \
    910B hang=Mm@60

on 910B late=Mm:507018@60 $FLOATS
try_before
check_success "products fail again and again" "${ARGS[@]}" -s ascend
check "products fail again and again: the message" stderr_has \
    'ascend0: 2 workers lost the processor.s stream: .* the text may differ'
check "products fail again and again: two losses" equal 2 "$(losses)"

on 910B abort=aclrtSynchronizeEventWithTimeout@40 $FLOATS
try_before
check_success "the library ends each worker" "${ARGS[@]}" -s ascend
check "the library ends each worker: two losses" equal 2 "$(losses)"

# Each worker is held up while it places its memory.  The probe, which found its choice
# earlier, makes no such call.
if [ -n "${FULL-}" ]; then
	straddle "${ARGS[@]}" -s cpu
	cpu_text=$(cat "$OUT")
	on 910B $FLOATS
	check_success "before a hang" "${ARGS[@]}" -s ascend
	STRADDLE_ASCEND=$STRADDLE_ASCEND,hang=aclrtCreateEvent
	check_success "the library holds up each worker" "${ARGS[@]}" -s ascend
	check "the library holds up each worker: the message" stderr_has \
	    'its device ascend hangs: a call of its library has not returned'
	check "the library holds up each worker: two losses" equal 2 "$(losses)"
	check "the library holds up each worker: the cores go on" stderr_has \
	    'ascend0: 0 operations on ascend, [0-9]+ on the CPU'
	check "the library holds up each worker: the CPU's text" equal \
	    "$(cat "$OUT")" "$cpu_text"
	for hang in aclrtMemcpy@3 aclrtSynchronizeEventWithTimeout@40; do
		on 910B $FLOATS
		check_success "before a hang" "${ARGS[@]}" -s ascend
		STRADDLE_ASCEND=$STRADDLE_ASCEND,hang=$hang,once=$T/$hang
		loses_one "$hang never returns" 'has not returned for 6' \
		    -s ascend
	done
fi

# A norm fails.
on 910B $NORMS
first "norms again" -s ascend
export WITHOUT=missing=WeightQuantBatchMatmulV2+AddRmsNorm+Add+InplaceAdd
recovers norm \
    'norm .*norm.weight, (product|SwiGLU) with .* failed with 507018, ACL_ERROR_RT_' \
    910B late=RmsNorm:507018@20
recovers swiglu \
    'norm .*norm.weight, SwiGLU with .*weight and .*weight: .* failed with 507018' \
    910B late=Silu:507018@20
recovers 'graph of a norm' \
    'captured norm .*attn_norm.weight, product with .*v.weight: .*aclmdlRIExecuteAsync failed' \
    910B fail=aclmdlRIExecuteAsync:507000@39
recovers 'graph of SwiGLU' \
    'captured norm .*ffn_norm.weight, SwiGLU with .*up.weight: .*aclmdlRIExecuteAsync failed' \
    910B fail=aclmdlRIExecuteAsync:507000@41
WITHOUT=missing=WeightQuantBatchMatmulV2+AddRmsNorm
recovers sum \
    'residual sum after blk.*weight(,|:) .* failed with 507018, ACL_ERROR_RT_' \
    910B late=Add:507018@20
recovers 'call of a sum' \
    'ascend[01]: residual sum after blk.*weight: .*aclnnAdd failed with 507000' \
    910B fail=aclnnAdd:507000@20 capture=0
on 910B $SUMS
first "sums with norms again" -s ascend
WITHOUT=missing=WeightQuantBatchMatmulV2
recovers 'norm of a sum' \
    'residual sum after blk.*output.weight, or norm .*, SwiGLU with .* failed with 5' \
    910B late=AddRmsNorm:507018@20
unset WITHOUT

# Kill the newest worker when there is text; a run that ended before or meanwhile is
# repeated.
lose_one()
{
	local try

	for try in 1 2 3 4 5 6; do
		run_any "$PYTHON" "$TESTS/tools/lose.py" "$OUT" 5 9:-1 "$BIN" "$@"
		[ "$RC" -eq 99 ] || [ "$(losses)" -eq 0 ] || break
	done
}
on 310B
check_success "undisturbed" "${ARGS[@]}" -n 80 -s ascend -s ascend
long=$(cat "$OUT") longhash=$(hash_of)
lose_one "${ARGS[@]}" -n 80 -s ascend -s ascend
check "a killed worker: exit 0, no process left" is_success
check "a killed worker: the same text" equal "$(cat "$OUT")" "$long"
check "a killed worker: the same logits" equal "$(hash_of)" "$longhash"
check "a killed worker: one loss" equal 1 "$(losses)"
e2e_end
