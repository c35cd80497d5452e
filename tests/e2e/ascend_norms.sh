#!/bin/bash
# tests/e2e/ascend_norms.sh - on an Ascend processor, norms before products, SwiGLU and
# residual sums after them, without the host: the same bits for every split;
# operators that the processor refuses run on the CPU.  Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

on 910B $FLOATS
first "products alone" -s ascend
floats_text=$text floats_hash=$hash
on 910B $NORMS
first "norms" -s ascend
check "norms: the same text" equal "$text" "$floats_text"
check "norms: the library is not misused" no_misuse
check "norms: they run on it" \
    stderr_has '^ascend0: 131 operations on ascend, [0-9]+ on the CPU'
check_same "norms in two sessions" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
on 310B ops=all $NORMS
check_same "norms on a board that has them" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
choose fail=aclSetAclOpExecutorRepeatable:561000 rc=1 fn-workspace=4096 vmm=0
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS "$switch"
	check_same "norms, $switch" -s ascend -s ascend
done
on 910B $NORMS
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain names the norm's operator, and the reasons of others" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	ops = json.load(open(sys.argv[1]))['ops']
	norms = [x for x in ops if x['op'] == 'rms_norm']
	assert norms and all(x['where'] == 'ascend' and 'aclnnRmsNorm' in
	    x['reason'] for x in norms), norms
	glus = [x for x in ops if x['op'] == 'swiglu']
	assert glus and all(x['where'] == 'ascend' and 'aclnnSilu' in
	    x['reason'] for x in glus), glus
	adds = [x for x in ops if x['op'] == 'add']
	assert adds and all(x['where'] == 'ascend' and x['reason'] ==
	    "aclnnAdd, of a product's results, captured" for x in adds), adds
	END
check_success "devices --verify" devices --verify
check "every norm of the processor is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'
on 910B $NORMS fail=Silu:561103
first "norms without SwiGLU" -s ascend
check "norms without SwiGLU run there" \
    stderr_has '^ascend0: 123 operations on ascend, [0-9]+ on the CPU'
choose wrong=Silu zero=Mul missing=Silu late=Silu abort=aclnnSilu
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "SwiGLU on the CPU, $switch" -s ascend -s ascend
done
# Sums have the host's bits, whoever adds.
on 910B $NORMS
first "sums" -s ascend
choose missing=Add+InplaceAdd wrong=Add+InplaceAdd zero=Add \
    late=Add:507018+InplaceAdd:507018 abort=Add fail=Add:561103
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "sums, $switch" -s ascend -s ascend --batch 3
done
# With the norm that adds, wherever the model is cut.
on 910B $SUMS
norms_hash=$hash
first "sums with norms" -s ascend
check "sums with norms: the same text" equal "$text" "$floats_text"
check "sums with norms: the operator's bits" test "$hash" != "$norms_hash"
check_same "sums with norms, cut inside of layers" -s ascend -s ascend \
    -s ascend --half-layers --batch $((1 + RANDOM % 12))
on 310B ops=all
check_same "sums with norms on a board" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
choose fail=aclSetAclOpExecutorRepeatable:561000 rc=1 fn-workspace=4096 \
    fail=Add:561103 capture=0
for switch in "${CHOSEN[@]}"; do
	on 910B $SUMS $switch
	check_same "sums with norms, $switch" -s ascend -s ascend
done
on 910B $SUMS
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain names the norm that adds" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	ops = json.load(open(sys.argv[1]))['ops']
	norms = [x['reason'] for x in ops if x['op'] == 'rms_norm']
	assert norms.pop() == 'aclnnRmsNorm, for products, captured', norms
	assert norms and set(norms) == {
	    'aclnnAddRmsNorm, for products, captured'}, norms
	adds = [x['reason'] for x in ops if x['op'] == 'add']
	assert 'aclnnAdd,' in adds.pop(), adds
	assert adds and all('aclnnAddRmsNorm' in x for x in adds), adds
	down = [x['reason'] for x in ops if 'ffn_down' in str(x.get('tensor',
	    x))]
	assert down and all(', for a sum' in x for x in down), down
	END
check_success "devices --verify" devices --verify
check "every sum of the processor is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'
on 910B $NORMS
first "norms by themselves" -s ascend
choose wide-sums=1 wrong=AddRmsNorm zero=AddRmsNorm missing=AddRmsNorm \
    late=AddRmsNorm abort=aclnnAddRmsNorm
for switch in "${CHOSEN[@]}"; do
	on 910B $SUMS $switch
	check_same "norms by themselves, $switch" -s ascend -s ascend
done
text=$floats_text hash=$floats_hash
choose wrong=RmsNorm zero=Cast missing=Cast abort=RmsNorm late=RmsNorm
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "norms on the CPU, $switch" -s ascend -s ascend
done
e2e_end
