#!/bin/bash
# tests/e2e/ascend.sh - the demo model over sessions on an Ascend processor, with
# stand-ins for CANN's libraries: the same logits for every split and batch, on a
# board and on a card, whatever way of multiplying is left; operators that all
# refuse, where the text is the CPU's; memory as the device counts it; missing
# libraries and wrong devices with the messages that a user reads.
# Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

straddle "${ARGS[@]}" -s cpu
text=$(cat "$OUT") hash=$(hash_of)
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

on 910B $FLOATS
first "a card" -s ascend
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
choose vmm=0 vmm=1 capture=0 graph-bytes=100000 missing=aclrtMapMem devices=1 \
    workspace-percent=130
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
first "integers" -s ascend
check "integers: the library is not misused" no_misuse
check_same "integers in two sessions" -s ascend -s ascend \
    --batch $((1 + RANDOM % 12))
on 910B company=rows
first "integers in blocks" -s ascend
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
	first "$type" -m "$model" -s ascend
	check_same "$type, two sessions" -m "$model" -s ascend -s ascend \
	    --batch $((1 + RANDOM % 12))
	check_success "$type: explain" explain -m "$model" -s ascend --json
	check "explain names $type" stdout_has "of ${type#* }"
done
text=$floats_text hash=$floats_hash

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
