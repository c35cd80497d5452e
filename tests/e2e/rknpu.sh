#!/bin/bash
# tests/e2e/rknpu.sh - the demo model over sessions on Rockchip's NPU, with a
# stand-in for librknnrt.so: the same logits for every chip, release, split and
# batch, faults of the library with the messages that a user reads, losses.
# Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/librknnrt.so" ] || e2e_skip "the stand-in was not built"
export LD_LIBRARY_PATH=$STANDIN STRADDLE_RKNN STRADDLE_RKNPU_ROOT
export STRADDLE_RKNPU_FROM=1		# no times are measured

for soc in rk3588 rk3576 rk3562 rk3566 rk3399; do
	mkdir -p "$T/$soc/proc/device-tree" "$T/$soc/run/lock"
	printf 'rockchip,%s\0' $soc >"$T/$soc/proc/device-tree/compatible"
done

# on CHIP [SWITCH...]: the machine and its library from here on.
on()
{
	STRADDLE_RKNPU_ROOT=$T/$1 STRADDLE_RKNN=soc=$1
	shift
	for switch; do STRADDLE_RKNN=$STRADDLE_RKNN,$switch; done
}

hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }
no_misuse() { ! stderr_has 'misuse'; }
N=5
ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning")
RUN=("${ARGS[@]}" -n $N)

on rk3588
check_success "one session" "${RUN[@]}" -s rknpu
text=$(cat "$OUT") hash=$(hash_of)
check "text is generated" test -n "$text"
check "the library is not misused" no_misuse
check "each product runs on the NPU" \
    stderr_has '^rknpu0: 57 operations on rknpu, 78 on the CPU'

# check_same LABEL ARGS...: the text and the logits of the first run.
check_same()
{
	local label=$1

	shift
	check_success "$label" "${RUN[@]}" "$@"
	check "$label: the same text" equal "$(cat "$OUT")" "$text"
	check "$label: the same logits" equal "$(hash_of)" "$hash"
	check "$label: the library is not misused" no_misuse
}

# --- chips, releases, splits, batches, places ---

vary()	# CHIP RELEASE FROM: a random split and batch
{
	local sessions=(-s rknpu) batch=$((1 + RANDOM % 64))

	[ $((RANDOM % 2)) -eq 0 ] || sessions=(-s rknpu -s rknpu)
	# It has one domain.
	[ "$2" != 1.6.0 ] || sessions=(-s rknpu)
	on "$1" "version=$2"
	STRADDLE_RKNPU_FROM=$3
	[ "$3" != none ] || unset STRADDLE_RKNPU_FROM
	check_same "$1, $2, from $3, ${sessions[*]}, batch $batch" \
	    "${sessions[@]}" --batch $batch
	export STRADDLE_RKNPU_FROM=1
}
socs=(rk3588 rk3576 rk3562 rk3566)
# One of them where each takes long.
if sanitized || [ -n "${STRADDLE_LAUNCH-}" ]; then
	choose "${socs[@]}"
	socs=("${CHOSEN[@]}")
fi
for soc in "${socs[@]}"; do
	choose 1.6.0 2.0.0b0 2.1.0 2.3.2
	for release in "${CHOSEN[@]}"; do
		choose 1 4 none 0
		for from in "${CHOSEN[@]}"; do
			vary $soc "$release" "$from"
		done
	done
done
if [ -n "${STRADDLE_LAUNCH-}" ]; then	# an emulator, with little time
	on rk3588 "fail=run:-2@400"
	check_same "a run fails" -s rknpu
	e2e_end
fi
on rk3588
check_same "one thread" -s rknpu,threads=1
check_same "three domains in one worker" -s '3*rknpu'
check "three domains in one worker: they are shown" stderr_has \
    '^rknpu0, rknpu1, rknpu2: one worker process, held to the sum'
STRADDLE_RKNN=soc=rk3588,version=1.6.0
check_refusal "two domains, and a library of 2023" 1 \
    'an IOMMU domain .* needs librknnrt.so 2.0.0, .* or use one session' \
    "${RUN[@]}" -s rknpu -s rknpu
on rk3588
check_success "beside the CPU" "${RUN[@]}" -s rknpu -s cpu
check "beside the CPU: the same text" equal "$(cat "$OUT")" "$text"

printf '%s\n' "In the beginning" "And it came to pass" "Blessed are the" \
    "And the king said unto" >"$T/prompts"
many()	# PARALLEL SESSION...
{
	straddle run -m "$MODEL" --prompts "$T/prompts" --parallel "$1" -n 6 \
	    --ctx 256 --temp 0 -q "${@:2}"
}
many 3 -s rknpu
check "several prompts at once" is_success
cp "$OUT" "$T/many"
STRADDLE_RKNPU_FROM=3
many 1 -s rknpu -s rknpu
STRADDLE_RKNPU_FROM=1
check "one prompt after the other: the same texts" cmp -s "$T/many" "$OUT"

check_success "explain" explain -m "$MODEL" -s rknpu --json
check "only products run on the NPU, all else has a reason" \
    "$PYTHON" - "$OUT" <<-'END'
	import json, sys
	o = json.load(open(sys.argv[1]))
	npu = [x for x in o['ops'] if x['where'] == 'rknpu']
	cpu = [x for x in o['ops'] if x['where'] == 'cpu']
	assert {x['op'] for x in npu} == {'matmul'} and len(npu) == 57, len(npu)
	assert 'matmul' not in {x['op'] for x in cpu}, cpu
	assert all(x['reason'] for x in cpu)
	END
check_success "devices --verify" devices --verify
check "every product of the NPU is right" \
    stdout_has '^verified: [0-9]+ ok, 0 wrong'

# --- the library or the machine cannot do it ---

NO=("${RUN[@]}" -s rknpu)
LD_LIBRARY_PATH=
check_refusal "no library" 1 'looked for librknnrt.so.*rknn-toolkit2' "${NO[@]}"
LD_LIBRARY_PATH=$STANDIN
on rk3588 version=1.5.2
check_refusal "a library of 2023" 1 'it is too old, install 1.6.0' "${NO[@]}"
on rk3399
check_refusal "another chip" 1 'rk3399' "${NO[@]}"
STRADDLE_RKNPU_ROOT=$T/rk3566 STRADDLE_RKNN=soc=rk3588
check_refusal "a library that serves another chip" 1 \
    'reports groups of columns of 16 .* on RK3566' "${NO[@]}"
on rk3588 driver=0.9.6
check_refusal "an old driver and another domain" 1 \
    'domain 1 needs the kernel.s RKNPU driver 0\.9\.8' \
    "${RUN[@]}" -s rknpu,iommu_domain=1
on rk3588 zero=2
check_refusal "zeros" 1 'computes wrong results: .*gives 0 instead of' "${NO[@]}"
on rk3588 wrong=2
check_refusal "one wrong bit" 1 \
    'computes wrong results: the product with .* use a device cpu' "${NO[@]}"
on rk3588 fail=create:-3@1
check_refusal "an NPU that cannot be reached" 1 \
    'rknn_matmul_create failed with -3, RKNN_ERR_DEVICE_UNAVAILABLE.*/dev/dri' \
    "${NO[@]}"

# Memory: a line of the library may stand beside that of the session.
is_short()	# PATTERN
{
	exits 1 && is_empty "$OUT" && no_process_left &&
	    [ "$(grep -vc 'E RKNN' "$ERR")" -eq 1 ] && stderr_has "$1"
}
choose fds=3 fds=30 domain-bytes=1300000 largest-bytes=100000
for switch in "${CHOSEN[@]}" domain-bytes=6500000; do
	on rk3588 $switch
	straddle "${NO[@]}"
	check "$switch" is_short 'rknpu0: no memory of the NPU for .* bytes'
done
on rk3588 fail=create_mem:-1@20
straddle "${NO[@]}"
check "no memory" is_short 'rknpu0: no memory of the NPU for .* bytes'
on rk3588 fail=mem_sync:-1@80
straddle "${NO[@]}"
check "a sync of weights fails" is_short 'rknpu0: rknn_mem_sync failed with -1'

choose query=none query=version fail=query:-1 coherent=1 fail=destroy:-1@9 \
    driver=0.9.6
for switch in "${CHOSEN[@]}" internal-bytes=4194304; do
	on rk3588 $switch
	check_same "$switch" -s rknpu
done

# --- calls that fail: the CPU takes over ---

losses() { grep -c '; restarting it (loss' "$ERR" || true; }
fails()	# CALL:CODE[@N]... PATTERN
{
	on rk3588 "fail=$1"
	check_same "$1" -s rknpu
	check "$1: a message has call and code" stderr_has "rknpu0: $2"
	check "$1: a message has the tensor" stderr_has \
	    "rknpu0: products with .*weight and others of its shape run on the CPU"
	check "$1: no worker is lost" equal 0 "$(losses)"
}
choose -1 -2 -3 -4 -5 -7 -10 -13
for code in "${CHOSEN[@]}"; do
	choose "matmul_create:create:$code@20" "mem_sync:mem_sync:$code@400" \
	    "matmul_set_io_mem:set_io_mem:$code@500" \
	    "matmul_set_core_mask:set_core_mask:$code@20"
	for call in "${CHOSEN[@]}" "matmul_run:run:$code@400"; do
		fails "${call#*:}" \
		    "rknn_${call%%:*} failed with $code, RKNN_ERR_"
	done
done
fails "create_mem_from_fd:-1@80" "rknn_create_mem_from_fd gives no view of"
fails "run:-2@400+run:-2@410+run:-2@420+run:-2@440+run:-2@480" \
    "rknn_matmul_run failed with -2"
check "more runs fail: three messages, and where to find the others" \
    equal 4 "$(grep -c 'run on the CPU' "$ERR")"

on rk3588 fail=run:-2
check_refusal "all runs fail: the self-test notices" 1 \
    'rknpu0: rknn_matmul_run failed with -2, RKNN_ERR_TIMEOUT' "${NO[@]}"

# --- workers that end, or hang ---

recovers()	# LABEL PATTERN
{
	check "$1: the message names the cause" stderr_has "rknpu0: $2"
	check "$1: one loss" equal 1 "$(losses)"
}
on rk3588 "abort=run@400,once=$T/once1"
check_same "the library ends the worker" -s rknpu
recovers "the library ends the worker" 'its worker was killed by signal 6'
on rk3588 abort=run@400
check_same "the library ends each worker" -s rknpu
check "the next worker does not send the shape again" \
    stderr_has 'the last worker ended in a product of the NPU: [1-3] shape'
on rk3588 "abort=create@9,once=$T/once2"
check_same "the library ends the worker in its load" -s rknpu
recovers "the library ends the worker in its load" \
    'its worker was killed by signal 6'
on rk3588 "hang=run@400,once=$T/once3"
check_same "the NPU hangs" -s rknpu
recovers "the NPU hangs" 'its device rknpu hangs'
check "the NPU hangs: the next worker knows" \
    stderr_has 'the last worker ended in a product of the NPU: [1-3] shape'

killed()	# LABEL SESSION...: a worker is killed while text is printed
{
	local label=$1 long hash

	shift
	check_success "$label, undisturbed" "${ARGS[@]}" -n 20 "$@"
	long=$(cat "$OUT") hash=$(hash_of)
	straddle_bg "${ARGS[@]}" -n 20 "$@"
	check "$label: text is printed" eventually generating
	check "$label: a worker can be killed" \
	    kill -KILL "$(workers | tail -n 1)"
	check "$label: the run ends" command_ends
	check "$label: the same text" equal "$(cat "$OUT")" "$long"
	check "$label: the same logits" equal "$(hash_of)" "$hash"
	check "$label: one loss" equal 1 "$(losses)"
	check "$label: no shape is blamed" eval '! stderr_has "last worker"'
}
generating() { leader_ended || [ "$(wc -c <"$OUT")" -gt 4 ]; }
on rk3576
killed "a killed worker" -s rknpu

# --- sessions of one process, each with a domain ---

# With lock=FILE the library ends a process that shares the NPU with another one
# beside a domain other than 0, as the kernel would freeze.
BOTH=(-s rknpu,process=npu,iommu_domain=0
    -s rknpu,process=npu,iommu_domain=1)
on rk3588 "lock=$T/lock"
check_same "two domains" "${BOTH[@]}"
check "two domains: the kernel would not freeze" eval '! stderr_has panic'
killed "a killed worker of two domains" "${BOTH[@]}"
on rk3588 "lock=$T/lock" "abort=run@600,once=$T/once4"
check_same "the library ends both" "${BOTH[@]}"
check "the library ends both: one loss" equal 1 "$(losses)"
check "the library ends both: the message" stderr_has \
    'its worker, which serves rknpu0, rknpu1, was killed by signal 6'
check "the library ends both: the next worker knows" \
    stderr_has 'rknpu[01]: the last worker ended in a product of the NPU'

on rk3588 "lock=$T/lock"
straddle_bg "${ARGS[@]}" -n 60 "${BOTH[@]}"
first=$GROUP
check "two domains: text is printed" eventually generating
OUT2=$OUT ERR2=$ERR OUT=$T/second ERR=$T/second.err
check_refusal "a second process beside two domains" 1 \
    'here: process [0-9]+ uses several IOMMU domains of the NPU' \
    "${RUN[@]}" -s rknpu
OUT=$OUT2 ERR=$ERR2 GROUP=$first RC=0
check "two domains beside a second process: the run ends" command_ends
check "two domains beside a second process: exit 0" exits 0
e2e_end
