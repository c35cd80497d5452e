#!/bin/bash
# tests/e2e/ascend.sh - the demo model over sessions on an Ascend processor, with
# stand-ins for CANN's libraries: the same logits for every split and batch, on a
# board and on a card, whatever way of multiplying is left; operators that all
# refuse, where the text is the CPU's; memory as the device counts it; losses;
# missing libraries and wrong devices with the messages that a user reads.
# Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

straddle "${ARGS[@]}" -s cpu
text=$(cat "$OUT") hash=$(hash_of)
cpu_text=$text
check "the CPU generates text" test -n "$text"

# --- every operator refuses: all of it on the CPU, in place, and said so ---

for soc in 310B 910B; do
	on $soc ops=none
	check_same "$soc: nothing runs" -s ascend -s ascend
	check "$soc: nothing runs: it says so" stderr_has \
	    '^ascend0: 0 operations on ascend, [0-9]+ on the CPU'
	check_success "$soc: explain" explain -m "$MODEL" -s ascend --json
	check "$soc: every operation is on the CPU, with a reason" \
	    "$PYTHON" - "$OUT" <<-'END'
		import json, sys
		ops = json.load(open(sys.argv[1]))['ops']
		assert ops and all(x['where'] == 'cpu' for x in ops)
		assert all(x['reason'] for x in ops)
		products = [x for x in ops if x['op'] == 'matmul']
		assert products and all('aclnnMm: failed with 361001' in
		    x['reason'] for x in products), products
		END
	check_success "$soc: devices --verify" devices --verify
	check "$soc: every product is right" \
	    stdout_has '^verified: [0-9]+ ok, 0 wrong'
done

# --- products on the processor ---

# choose WORD...: CHOSEN is one of them, all if FULL is set.
choose()
{
	local words=("$@")

	CHOSEN=("${words[RANDOM % $#]}")
	[ -z "${FULL-}" ] || CHOSEN=("$@")
}
# Without integers, whose results have 16 bits, and norms, a card computes as a board
# does.
FLOATS=fail=WeightQuantBatchMatmulV2:561103+RmsNorm:561103
on 910B $FLOATS
check_success "a card" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
check "a card: text is generated" test -n "$text"
check "a card: the library is not misused" no_misuse
check "a card: products run on it" \
    stderr_has '^ascend0: 90 operations on ascend, [0-9]+ on the CPU'

# Each way that is left when others refuse, in any way that was seen, gives the same
# exact sums here.
vary()	# SOC [SWITCH...]
{
	local sessions=(-s ascend) batch=$((1 + RANDOM % 12))

	[ $((RANDOM % 2)) -eq 0 ] || sessions=(-s ascend -s ascend)
	on "$@" $FLOATS
	check_same "$*, ${sessions[*]}, batch $batch" "${sessions[@]}" \
	    --batch $batch
}
choose vmm=0 vmm=1 capture=0 graph-bytes=100000 missing=aclrtMapMem devices=1 workspace-percent=130
vary 910B "${CHOSEN[0]}"
choose host-skew=16 host-skew=8 quirks=0 ops=all workspace-percent=130
vary 310B "${CHOSEN[0]}"
for soc in 310B 910B; do
	choose missing=Mm fail=Mm:561103 zero=Mm wrong=Mm late=Mm:507018 \
	    missing=aclnnMm fail=aclnnMm:361001 abort=Mm abort=aclnnMm
	for switch in "${CHOSEN[@]}"; do
		vary $soc "$switch"
	done
done
vary 310B ops=docs
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain names the operator, and reasons for all else" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	ops = json.load(open(sys.argv[1]))['ops']
	npu = [x for x in ops if x['where'] == 'ascend']
	assert {x['op'] for x in npu} == {'matmul', 'quantize'}, npu
	assert all('aclnnConvolution' in x['reason'] for x in npu
	    if x['op'] == 'matmul')
	assert all(x['reason'] for x in ops)
	norms = [x for x in ops if x['op'] == 'rms_norm']
	assert norms and all('aclnnRmsNorm: failed with 561103' in x['reason']
	    for x in norms), norms
	END
check_success "devices --verify" devices --verify
check "every product of the processor is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'

# A board on which nothing but the older interface multiplies.
for soc in 310B 910B; do
	vary $soc ops=classic
	check "$soc: operators by name: products run" stderr_has \
	    '^ascend0: [1-9][0-9]* operations on ascend, [0-9]+ on the CPU'
done
check_success "explain operators by name" explain -m "$MODEL" -s ascend --json
check "explain names the operator and its interface" stdout_has \
    '"aclop MatMulV2 of 16-bit floats, made from Q8_0, not captured: not with'
on 310B ops=classic
check_success "devices --verify of operators by name" devices --verify
check "every product of operators by name is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'
check_success "memory of the graph engine" devices --json
check "the graph engine's memory is planned for, as the library's" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = [x for x in json.load(open(sys.argv[1]))['devices']
	    if x['kind'] == 'ascend'][0]
	assert d['limits']['library_bytes']['value'] >= 32 << 20, d['limits']
	END
on 310B ops=classic missing=aclopCompile
check_success "no compiler" "${ARGS[@]}" -s ascend
check "no compiler: nothing runs on the processor" stderr_has \
    '^ascend0: 0 operations on ascend, [0-9]+ on the CPU'

# Products that refuse matrices as they lie in the file.
NZ_ONLY=(nd=0 missing=Convolution+aclopCompile)
for soc in 310B 910B; do
	vary $soc "${NZ_ONLY[@]}"
done
check_success "explain FRACTAL_NZ" explain -m "$MODEL" -s ascend --json
check "explain names the layout" stdout_has \
    '"aclnnMm of 16-bit floats in FRACTAL_NZ, made from Q8_0, captured"'
check_success "devices --verify of FRACTAL_NZ" devices --verify
check "every product with FRACTAL_NZ is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'

# One thing that ends the probe takes nothing else along.
on 910B ${NZ_ONLY[*]} abort=aclmdlRIExecuteAsync
check_success "devices: a graph ends the probe" devices
check "a graph ends the probe: the library packs all the same" stdout_has \
    'ok: aclnnMm of 16-bit floats in FRACTAL_NZ, results of'
check "a graph ends the probe: nothing is captured" stdout_has \
    'captured graphs +not ok: none'
check "a graph ends the probe: the layout is not ours" eval \
    '! stdout_has "packed here"'

# Q8_0 as integers: as much of the device's memory as of the file.
floats_text=$text floats_hash=$hash
on 910B
check_success "integers" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
check "integers: the library is not misused" no_misuse
check_same "integers in two sessions" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
on 910B company=rows
check_success "integers in blocks" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
check_same "integers in blocks, two sessions" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain names the operator and its weights" stdout_has \
    'aclnnWeightQuantBatchMatmulV2 of 8-bit integers'
check_success "devices --verify" devices --verify
check "every product with integers is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'

# Other blocks become integers too, in every session of every split.
for type in 'q4_1 4-bit integers with offsets' \
    'q5_1 8-bit integers, made from Q5_1'; do
	model=$T/${type%% *}.gguf
	check_success "${type%% *}" quantize -q "$MODEL" "$model" "${type%% *}"
	on 910B
	check_success "$type" "${ARGS[@]}" -m "$model" -s ascend
	text=$(cat "$OUT") hash=$(hash_of)
	check_same "$type, two sessions" -m "$model" -s ascend -s ascend \
	    --batch $((1 + RANDOM % 12))
	check_success "$type: explain" explain -m "$model" -s ascend --json
	check "explain names $type" stdout_has "of ${type#* }"
done
text=$floats_text hash=$floats_hash

# --- norms before products, SwiGLU and residual sums after, without the host ---

# The norm that adds has other bits here.
NORMS=fail=WeightQuantBatchMatmulV2:561103+AddRmsNorm:561103
on 910B $NORMS
check_success "norms" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
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
check_success "norms without SwiGLU" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
check "norms without SwiGLU run there" \
    stderr_has '^ascend0: 123 operations on ascend, [0-9]+ on the CPU'
choose wrong=Silu zero=Mul missing=Silu late=Silu abort=aclnnSilu
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "SwiGLU on the CPU, $switch" -s ascend -s ascend
done
# Sums have the host's bits, whoever adds.
on 910B $NORMS
check_success "sums" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
choose missing=Add+InplaceAdd wrong=Add+InplaceAdd zero=Add \
    late=Add:507018+InplaceAdd:507018 abort=Add fail=Add:561103
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "sums, $switch" -s ascend -s ascend --batch 3
done
# With the norm that adds, wherever the model is cut.
SUMS=fail=WeightQuantBatchMatmulV2:561103
on 910B $SUMS
check_success "sums with norms" "${ARGS[@]}" -s ascend
norms_hash=$hash text=$(cat "$OUT") hash=$(hash_of)
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
check_success "norms by themselves" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
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

# --- with other devices in one pipeline ---

mkdir -p "$T/rk/proc/device-tree" "$T/rk/run/lock"
printf 'rockchip,rk3588\0' >"$T/rk/proc/device-tree/compatible"
export STRADDLE_RKNPU_ROOT=$T/rk STRADDLE_RKNN=soc=rk3588 STRADDLE_RKNPU_FROM=1
cat >"$T/mixed.conf" <<-'END'
	session npu0 { device = "ascend" }
	session cpu0 { device = "cpu" }
	session rk0 { device = "rknpu" }
	END
! command -v qemu-hexagon >/dev/null || [ -n "${STRADDLE_LAUNCH-}" ] ||
    echo 'session dsp0 { device = "hexagon" port = "emulated" }' \
    >>"$T/mixed.conf"
for soc in 310B 910B; do
	on $soc
	check_success "$soc beside others" "${ARGS[@]}" -c "$T/mixed.conf"
	check "$soc beside others: the same text" equal "$(cat "$OUT")" "$text"
done

# --- memory: as the device's own count has it ---

cat >"$T/count.py" <<-'END'
	import json, re, sys
	o = json.load(open(sys.argv[1]))
	seen = [tuple(map(int, re.findall(r'\d+', l)[1:3]))
	    for l in open(sys.argv[2])]
	for s in o['sessions']:
	    assert s['device_bytes'] > 0 and s['device_slack'] <= int(sys.argv[3])
	    have = (s['device_bytes'], s['pinned'])
	    assert have in seen, (s['name'], have, seen)
	    seen.remove(have)
	    assert s['weights'] + s['compute'] >= sum(have), s
	END
counts()	# LABEL SLACK [SWITCH...]
{
	on "${@:3}"
	check_success "$1" "${ARGS[@]}" --json -s ascend -s ascend
	check "$1: memory to the byte" "$PYTHON" "$T/count.py" "$OUT" \
	    "$T/report" "$2" 2>>"$ERR"
}
counts "memory of a board" 28672 310B
counts "virtual memory" 2097152 910B
counts "no virtual memory" 28672 910B vmm=0
counts "norms of a board" 28672 310B ops=all
counts "sums without the norm that adds" 28672 910B vmm=0 $NORMS
counts "memory with operators by name" 28672 310B ops=classic
counts "memory of FRACTAL_NZ" 28672 310B "${NZ_ONLY[@]}"
counts "memory of FRACTAL_NZ on a card" 2097152 910B $FLOATS "${NZ_ONLY[@]}"

# What the kernel counts beyond the ledger, from which a card's memory is left out: the
# kernel does not count it, but for a stand-in, where it is the process's.  A sanitizer's
# memory is in no plan.
for soc in 910B 310B; do
	on $soc $FLOATS
	check_success "$soc: unaccounted" "${ARGS[@]}" --json -s ascend
	sanitized || check "$soc: unaccounted is what the card holds, or less" \
	    "$PYTHON" - "$OUT" $soc 2>>"$ERR" <<-'END'
		import json, sys
		s = json.load(open(sys.argv[1]))['sessions'][0]
		n, card = s['unaccounted'], s['device_bytes']
		assert 0 <= n <= card + (4 << 20) if sys.argv[2] == '910B' \
		    else n <= 2 << 20, s
		END
done

# --- captured graphs: few rows are started by them, with the same bits ---

replays() { grep -q ' [1-9][0-9]* replays' "$T/report"; }
on 910B $FLOATS
check_same "captured" -s ascend
check "captured: graphs run" replays
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain says so" stdout_has '16-bit floats, made from Q8_0, captured"'
for switch in capture=0 graph-stale=1 graph-drops=Mm graph-rebinds=Mm \
    graph-bytes=100000000; do
	on 910B $FLOATS $switch
	check_same "$switch" -s ascend
	check_success "$switch: explain" explain -m "$MODEL" -s ascend --json
	check "$switch: explain has the reason" stdout_has \
	    'not captured: (failed with 207000|a replay|a graph needs)'
done
# plan_is_enough LABEL: with a cap of what the plan counts.
plan_is_enough()
{
	local cap

	check_success "$1: plan" plan -m "$MODEL" -s ascend --json
	cap=$(($("$PYTHON" -c "import json, sys
print(json.load(sys.stdin)['sessions'][0]['planned'])" <"$OUT") / 1048576 + 1))
	check_same "$1: the plan is enough" -s ascend,cap=${cap}MiB
}
on 910B $FLOATS graph-bytes=1000000
plan_is_enough "graphs of 1 MB"
# The probe has 4 captures; from the session's third on there are no more.
on 910B $FLOATS fail=aclmdlRICaptureEnd:507903@7
check_same "a capture that fails" -s ascend
check "a capture that fails: it says so" stderr_has \
    'no more products are captured: .*aclmdlRICaptureEnd failed with 507903'

# Norms and SwiGLU with their products, too, in the same graph.
on 910B $NORMS
check_success "captured norms" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
check "captured norms: graphs run" replays
on 910B $NORMS capture=0
check_same "norms, not captured" -s ascend -s ascend
on 910B $NORMS
check_success "explain captured norms" explain -m "$MODEL" -s ascend --json
for what in aclnnRmsNorm 'aclnnSilu and aclnnMul'; do
	check "explain: $what is captured" stdout_has "\"$what, .*, captured\""
done
check_success "devices: captured norms" devices
check "devices names what is captured" stdout_has \
    'captured graphs +ok: products of few rows, with norms and SwiGLU'
# Where only their graphs are wrong, products are captured as before.
choose graph-drops=Silu graph-drops=RmsNorm graph-rebinds=Cast graph-rebinds=Silu
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "$switch" -s ascend -s ascend
	check "$switch: graphs of products run" replays
	check_success "$switch: explain" explain -m "$MODEL" -s ascend --json
	check "$switch: explain has the reason for norms" stdout_has \
	    '"aclnnRmsNorm, .*, not captured: a replay gives'
	check "$switch: products are captured" stdout_has \
	    '16-bit floats, made from Q8_0, captured"'
done
on 910B $NORMS abort=aclmdlRIExecuteAsync@6
check_success "a graph of a norm ends the probe" devices
check "a graph of a norm ends the probe: products are captured" eval \
    'tr -s " \n" "  " <"$OUT" | grep -q "few rows, without norms and SwiGLU (the trial ends its process)"'
on 910B $NORMS graph-bytes=1000000
plan_is_enough "norms in graphs of 1 MB"
text=$floats_text hash=$floats_hash

on 910B vmm=0 mem-bytes=8000000 $FLOATS
check_refusal "a small card" 3 \
    'session ascend0 .* of the memory of its device ascend are needed, .* short' \
    "${ARGS[@]}" -s ascend
check_refusal "two sessions on a small card" 3 \
    'session ascend[01] .*sessions on one device share by their caps' \
    "${ARGS[@]}" -s ascend -s ascend
check_refusal "the small card by its number, too" 3 \
    'session ascend[01] .*sessions on one device share by their caps' \
    "${ARGS[@]}" -s ascend -s ascend,port=0
check_success "a small card and the CPU" "${ARGS[@]}" -s ascend -s cpu

# --- losses ---

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
check_success "norms again" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
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
check_success "sums with norms again" "${ARGS[@]}" -s ascend
text=$(cat "$OUT") hash=$(hash_of)
WITHOUT=missing=WeightQuantBatchMatmulV2
recovers 'norm of a sum' \
    'residual sum after blk.*output.weight, or norm .*, SwiGLU with .* failed with 5' \
    910B late=AddRmsNorm:507018@20
unset WITHOUT
text=$floats_text hash=$floats_hash

generating() { leader_ended || [ "$(wc -c <"$OUT")" -gt 4 ]; }
on 310B
check_success "undisturbed" "${ARGS[@]}" -n 80 -s ascend -s ascend
long=$(cat "$OUT") longhash=$(hash_of)
straddle_bg "${ARGS[@]}" -n 80 -s ascend -s ascend
check "text is printed" eventually generating
check "a worker can be killed" kill -KILL "$(workers | tail -n 1)"
check "a killed worker: the run ends" command_ends
check "a killed worker: the same text" equal "$(cat "$OUT")" "$long"
check "a killed worker: the same logits" equal "$(hash_of)" "$longhash"
check "a killed worker: one loss" equal 1 "$(losses)"

# --- the library or the machine cannot do it ---

NO=("${ARGS[@]}" -s ascend)
LD_LIBRARY_PATH=
check_refusal "no library" 1 \
    'ascend0: no device ascend here: looked for libascendcl.so: .*CANN toolkit' \
    "${NO[@]}"
LD_LIBRARY_PATH=$STANDIN
on 310B stub=1
check_refusal "a library for linking" 1 'is a stub, .* returned 100039' \
    "${NO[@]}"
on 310B
check_refusal "a device that is not there" 1 'there is no device 3: CANN finds 1' \
    "${NO[@]},port=3"
check_refusal "not a number" 2 "'x1' is not a port: .*number of a device" \
    "${NO[@]},port=x1"
on 310B fail=aclrtSetDevice:507033
check_refusal "a device that cannot be opened" 1 \
    'aclrtSetDevice failed with 507033, .*' "${NO[@]}"
on 910B
check_success "the second device" "${NO[@]},port=1"
check_success "two cards" "${ARGS[@]}" -s ascend -s ascend,port=1
check "two cards: the same text" equal "$(cat "$OUT")" "$text"
check_success "devices" devices --json
check "what is missing on this machine is named" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = [x for x in json.load(open(sys.argv[1]))['devices']
	    if x['kind'] == 'ascend'][0]
	assert d['found'], d
	bad = {c['what']: c['text'] for c in d['checks'] if not c['ok']}
	assert 'davinci0' in bad['device nodes'], bad
	assert 'set_env.sh' in bad['ASCEND_OPP_PATH'], bad
	END
# A machine with everything but the kernels of this chip, then with them.
mkdir -p "$T/root/dev" "$T/root/usr/local/Ascend/driver" "$T/opp"
touch "$T"/root/dev/{davinci0,davinci_manager,devmm_svm,hisi_hdc}
echo "Version=24.1.rc2" >"$T/root/usr/local/Ascend/driver/version.info"
export ASCEND_HOME_PATH=$T/root ASCEND_OPP_PATH=$T/opp
on 310B
check_success "no kernels" devices
check "the package of the chip's kernels is named" eval 'tr -s " \n" "  " \
    <"$OUT" | grep -q "operators for Ascend310B1, Ascend-cann-kernels-310b"'
mkdir -p "$T/opp/built-in/op_impl/ai_core/tbe/kernel/config/ascend310b"
check_success "all is there" devices --json
check "all is there: every check is ok" "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	d = [x for x in json.load(open(sys.argv[1]))['devices']
	    if x['kind'] == 'ascend'][0]
	bad = {c['what'] for c in d['checks'] if not c['ok']}
	assert bad <= {'integer weights'} and len(d['checks']) >= 8, d
	assert '24.1.rc2' in str(d['checks'])
	END
e2e_end
