#!/bin/bash
# tests/e2e/rknpu_domains.sh - sessions in several IOMMU domains of Rockchip's NPU,
# which one process must have for itself, with a stand-in for librknnrt.so.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/librknnrt.so" ] || e2e_skip "the stand-in was not built"
mkdir -p "$T/proc/device-tree" "$T/run/lock"
printf 'rockchip,rk3588\0' >"$T/proc/device-tree/compatible"
LOCK=$T/run/lock/straddle-rknpu.lock
export LD_LIBRARY_PATH=$STANDIN STRADDLE_RKNPU_ROOT=$T STRADDLE_RKNPU_FROM=1

RUN=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning")
switches() { export STRADDLE_RKNN=$1; }
hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }
# A process beside the first one.
second() { timeout "$LIMIT" "$BIN" "$@" >"$T/second.out" 2>"$T/second.err" || true; }
is_same() { is_success && equal "$(hash_of)" "$hash"; }

switches coherent=0
straddle "${RUN[@]}" -n 5 -s rknpu
check "one session" is_success
hash=$(hash_of)

# --- one worker, a domain for each session ---

straddle "${RUN[@]}" -n 5 -s rknpu -s rknpu -s rknpu
check "three sessions give the logits of one" is_same
check "one process serves them" \
    stderr_has '^rknpu0, rknpu1, rknpu2: one worker process, held to the sum'
check "the library is not misused" eval '! stderr_has misuse'
straddle "${RUN[@]}" -n 5 -s rknpu,iommu_domain=15 -s rknpu -s rknpu,iommu_domain=0
check "numbers may be given" is_same
check_refusal "a number twice" 2 \
    'iommu_domain 3: session b has it too, each needs its own' \
    "${RUN[@]}" -s a=rknpu,iommu_domain=3 -s b=rknpu,iommu_domain=3
check_refusal "more sessions than domains" 2 \
    'device rknpu has 16 IOMMU domains, one for each session' \
    plan -m "$MODEL" -s '17*rknpu'
check_refusal "another device" 2 'iommu_domain: only valid with device rknpu' \
    "${RUN[@]}" -s cpu,iommu_domain=1

# Each domain has its own addresses: what fits into two does not fit into one.
switches coherent=1,domain-bytes=5000000
straddle "${RUN[@]}" -n 5 -s rknpu
check "a full domain is refused by its number" eval 'exits 1 &&
    stderr_has "no memory of the NPU for .*IOMMU domain 0 is full"'
straddle "${RUN[@]}" -n 5 -s rknpu -s rknpu
check "two domains hold what one does not" is_same

# --- losses take all sessions of the worker ---

for fault in abort=run@200 abort=create@30; do
	rm -f "$T/once"
	switches "$fault,once=$T/once"
	straddle "${RUN[@]}" -n 5 -s rknpu -s rknpu
	check "$fault: the same logits" is_same
	check "$fault: the shape is not sent again" \
	    stderr_has 'the last worker ended in a product of the NPU: [0-9]+ shape'
done
switches coherent=0
straddle_bg "${RUN[@]}" -n 40 -s rknpu -s rknpu
eventually test -s "$OUT"
kill -KILL $(workers | head -1)
command_ends
check "killed: it goes on" is_success
killed=$(hash_of)
check "killed: no shape is blamed" eval '! stderr_has "the last worker ended in"'
straddle "${RUN[@]}" -n 40 -s rknpu
check "killed: the same logits" equal "$(hash_of)" "$killed"

# --- a second process ---

straddle_bg "${RUN[@]}" -n 60 -s rknpu -s rknpu
eventually test -s "$OUT"
worker=$(workers | head -1)
for more in "-s rknpu" "-s rknpu -s rknpu"; do
	# shellcheck disable=SC2086
	second "${RUN[@]}" -n 1 $more
	check "a second process is refused by name ($more)" grep -q \
	    "process $worker uses several IOMMU domains of the NPU, and a second process would freeze" \
	    "$T/second.err"
done
command_ends
check "the first one is not disturbed" is_success

straddle_bg "${RUN[@]}" -n 60 -s rknpu
eventually test -s "$OUT"
second "${RUN[@]}" -n 1 -s rknpu
check "two processes of domain 0 run at once" grep -q '^hash' "$T/second.err"
second "${RUN[@]}" -n 1 -s rknpu,iommu_domain=1
check "another domain is refused beside domain 0" grep -q \
    'IOMMU domain 1 needs the NPU for this process alone, but process' "$T/second.err"
command_ends
check "domain 0 is not disturbed" is_success

# --- the lock ---

rm -f "$LOCK"
ln -s "$T/elsewhere" "$LOCK"
check_refusal "a lock that is a link" 1 \
    'cannot make sure that no other process uses the NPU' \
    "${RUN[@]}" -n 1 -s rknpu,iommu_domain=1
check "nothing is made where it points to" test ! -e "$T/elsewhere"
rm -r "$T/run"
check_refusal "no folder for the lock" 1 \
    'straddle-rknpu.lock: No such file or directory' \
    "${RUN[@]}" -n 1 -s rknpu,iommu_domain=1
straddle "${RUN[@]}" -n 5 -s rknpu
check "domain 0 needs none" is_same

e2e_end
