#!/bin/bash
# tests/e2e/device_cache.sh - what a device tried is kept in a file: the second start
# tries nothing and computes the same; another processor or program, a damaged file, a
# failed session or devices --verify try again; a home that cannot be written works.
# With the stand-ins for CANN's libraries, whose report counts the products.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/libascendcl.so" ] || e2e_skip "the stand-ins were not built"
export LD_LIBRARY_PATH=$STANDIN STRADDLE_ASCEND STRADDLE_ASCEND_ROOT=$T/root
FILE=$T/.cache/straddle/devices/ascend

on()	# SOC [SWITCH...]
{
	STRADDLE_ASCEND=soc=$1,report=$T/report
	shift
	for switch; do STRADDLE_ASCEND=$STRADDLE_ASCEND,$switch; done
	true >"$T/report"
}
hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }
# The first process is the probe.
trials() { sed -n '1s/.* \([0-9]*\) products.*/\1/p' "$T/report"; }
ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 4 -s ascend)

# tried LABEL ARGS...; known LABEL ARGS...: the command, and whether it tried.
tried()
{
	true >"$T/report"
	check_success "$@"
	check "$1: it tries" test "$(trials)" -gt 0
}
known()
{
	true >"$T/report"
	check_success "$@"
	check "$1: nothing is tried" equal "$(trials)" 0
}
words() { tr -s ' \n' '  ' <"$OUT" | grep -qE "$1"; }

on 910B
tried "the first start" "${ARGS[@]}"
text=$(cat "$OUT") hash=$(hash_of)
check "the file is private" equal "$(stat -c %a "$FILE")" 600
known "the second start" "${ARGS[@]}"
check "the second start: the same text" equal "$(cat "$OUT")" "$text"
check "the second start: the same logits" equal "$(hash_of)" "$hash"
known "plan" plan -m "$MODEL" -s ascend
known "devices" devices
check "devices: it says so" words \
    'ok: not tried again: found out [0-9]+ (s|min) ago, .*devices/ascend '
check "devices: memory is asked each time" words 'device_free_bytes +1.00 GiB'
known "devices -v" devices -v
known "another card of the machine" "${ARGS[@]},port=1"
check "another card: the same logits" equal "$(hash_of)" "$hash"

tried "devices --verify" devices --verify
check "devices --verify: it says so" words 'ok: tried now, and kept as'
check "devices --verify: the processor computes what is verified" test \
    "$(sed -n '2s/.* \([0-9]*\) products.*/\1/p' "$T/report")" -gt 100
known "after devices --verify" devices

# --- something else is there ---

on Ascend910B1
tried "another processor" devices
check "another processor: it says so" words \
    'tried now, .*is processor=Ascend910B1, was processor=Ascend910B2'
on 910B
tried "the first processor" "${ARGS[@]}"
mkdir -p "$T/root/usr/local/Ascend/driver"
echo "Version=24.1.rc2" >"$T/root/usr/local/Ascend/driver/version.info"
tried "another driver" devices
check "another driver: it says so" words 'is driver=/.*, was driver=none'
known "another driver, again" devices
tried "another driver: the model's shapes" "${ARGS[@]}" -v
check "another driver: the ways are not tried again" stderr_has \
    'tried now, .*cache; not the ways, only shapes of this model'
known "another driver: the model's shapes, again" "${ARGS[@]}"
on 910B devices=1 mem-bytes=900000000
known "another number of devices" "${ARGS[@]}"
known "less memory" devices
check "less memory: it is asked each time" words 'device_free_bytes +858 MiB'

# --- the file ---

on 910B
tried "before damage" devices --verify
size=$(stat -c %s "$FILE")
for at in 0 20 100 $((size - 100)) $((size - 1)); do
	printf '\377' | dd of="$FILE" bs=1 seek="$at" conv=notrunc status=none
	tried "damage at byte $at" "${ARGS[@]}" -v
	check "damage at byte $at: it says so" stderr_has \
	    'straddle/devices/ascend: it'
	check "damage at byte $at: the same logits" equal "$(hash_of)" "$hash"
done
truncate -s 10 "$FILE"
tried "a short file" devices
truncate -s 100000 "$FILE"
tried "a long file" devices
chmod 0666 "$FILE"
tried "a file that others can write" devices -v
check "a file that others can write: it says so" stderr_has \
    'not a file that only this user can write'
rm -r "$T/.cache"
tried "no file" devices
known "no file, then one" devices
tried "no file, then the model's shapes" "${ARGS[@]}"

# --- too little memory for a trial: another program has it ---

# short CALL REASON: devices names what lacked memory, and nothing is kept.
short()
{
	rm -f "$FILE"
	on 910B vmm=0 "fail=$1"
	tried "$1" devices
	check "$1: the trial is named" words "$2"
	check "$1: it says so" words \
	    'tried now, and not kept: no time or memory was left for all trials'
	check "$1: nothing is kept" eval '! [ -e "$FILE" ]'
}
short aclrtMalloc:207001@6 'not aclnnMm: failed with 207001'
short aclrtMalloc:207001@60 'not: AddRmsNorm \(207001'
short aclmdlRICaptureBegin:207001 'calls are made one by one: failed with 207001'
short aclmdlRICaptureEnd:207001@9 'without norms and SwiGLU \(failed with 207001'
# A limit is there the next time, too.
on 910B vmm=0 fail=aclmdlRICaptureEnd:207010@9
tried "a limit" devices
check "a limit: it is kept" test -s "$FILE"
# A shape of the model ends the process, whose next one goes on with the ways.
rm "$FILE"
on 910B vmm=0 fail=aclmdlRICaptureEnd:207001@9 shape=Silu:512:abort
tried "memory, then an end" plan -m "$MODEL" -s ascend
check "memory, then an end: nothing is kept" eval '! [ -e "$FILE" ]'
# The graphs of a way that is faster for the model's shapes.
on 910B vmm=0 missing=WeightQuantBatchMatmulV2+RmsNorm slow=Mm:200 \
    fail=aclmdlRICaptureEnd:207001@5
tried "memory of a faster way" plan -m "$MODEL" -s ascend
check "memory of a faster way: nothing is kept" eval '! [ -e "$FILE" ]'
# Other shapes are kept.
on 910B vmm=0
tried "ways alone" devices
for call in aclrtMalloc:207001@6 aclrtMemcpy:207001@1; do
	on 910B vmm=0
	tried "before $call" devices --verify
	on 910B vmm=0 "fail=$call"
	tried "$call: a shape" plan -m "$MODEL" -s ascend
	on 910B vmm=0
	known "$call: then" devices
	check "$call: another shape is left" words '7 were tried by earlier starts'
	tried "$call: it is tried again" plan -m "$MODEL" -s ascend
	known "$call: at last" devices
	check "$call: all shapes are kept" words '8 were tried by earlier starts'
done
on 910B
known "memory is there again" "${ARGS[@]}"

# --- a session that fails ---

on 910B late=WeightQuantBatchMatmulV2:507018
straddle "${ARGS[@]}"
check "an operator that fails now" equal "$RC" 1
check "an operator that fails now: it is named" stderr_has 'failed with 507018'
check "an operator that fails now: the message" stderr_has \
    'device ascend: how it computes was found out earlier, .*; start again'
check "an operator that fails now: no file" eval '! [ -e "$FILE" ]'
tried "an operator that fails now, again" "${ARGS[@]}"
rm "$FILE"
on 910B
tried "after a failure" "${ARGS[@]}"
check "after a failure: the same logits" equal "$(hash_of)" "$hash"

# --- no place ---

XDG_CACHE_HOME=/dev/null
export XDG_CACHE_HOME
tried "no folder" "${ARGS[@]}"
check "no folder: nothing is said" eval '! stderr_has "cannot be kept"'
tried "no folder, again" "${ARGS[@]}" -v
check "no folder: -v says so" stderr_has 'cannot be kept in the user.s cache'
XDG_CACHE_HOME=$T/other
tried "a folder of its own" devices
known "a folder of its own, again" devices
check "a folder of its own: the file" test -s "$T/other/straddle/devices/ascend"
if [ "$(id -u)" -ne 0 ]; then
	XDG_CACHE_HOME=$T/fixed
	mkdir "$T/fixed"
	chmod 0500 "$T/fixed"
	tried "a folder that cannot be written" "${ARGS[@]}"
fi
e2e_end
