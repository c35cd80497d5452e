#!/bin/bash
# tests/tools/conformance.sh - compare logits, token ids and perplexities with recorded
# ones.  The records and their tools are outside the tree, in $SHARED.
#
# usage: SHARED=../shared tests/tools/conformance.sh "MODEL ..."
set -eu
shared=${SHARED:-../shared}
bin=${STRADDLE_BIN:-build/straddle}
[ -d "$shared/vectors" ] || { echo "skipped: no $shared/vectors"; exit 0; }
made=$(mktemp -d "${TMPDIR:-/tmp}/straddle-conformance.XXXXXX")
trap 'rm -rf "$made"' EXIT

# check_logits SESSIONS BATCH: compare the logits of every model.
check_logits()
{
	echo "sessions: $1, batch $2, kernels: ${STRADDLE_CPU_MASK-all}"
	# shellcheck disable=SC2086
	python3 "$shared/tools/conform.py" --straddle "$bin" \
	    --vectors "$shared/vectors" --args "$1 --batch $2" $models
}

models=$1
# Each split with a batch that is drawn; neither changes a bit (e2e/invariance).
for sessions in "-s cpu" "-s cpu -s cpu" "-s cpu -s cpu -s cpu"; do
	batches=(1 7 512)
	[ -n "${FULL-}" ] || batches=("${batches[RANDOM % 3]}")
	for batch in "${batches[@]}"; do
		check_logits "$sessions" $batch
	done
done
STRADDLE_CPU_MASK=0 check_logits "-s cpu" 512
# BF16 as products of floats in AVX-512; newer cores have BF16 instructions.
[ "$(uname -m)" = aarch64 ] || models=llama-bf16 \
    STRADDLE_CPU_MASK=avx2+avx512_vnni check_logits "-s cpu" 512
# Rockchip's NPU, by a stand-in for its library.
if [ -e "$(dirname "$bin")/tests/standin/librknnrt.so" ]; then
	export LD_LIBRARY_PATH=${bin%/*}/tests/standin STRADDLE_RKNPU_FROM=1
	# They gave the same numbers: one, and another that is drawn.
	socs=(rk3576 rk3562 rk3566)
	[ -n "${FULL-}" ] || socs=("${socs[RANDOM % 3]}")
	for soc in rk3588 "${socs[@]}"; do
		export STRADDLE_RKNN=soc=$soc STRADDLE_RKNPU_ROOT=$made/$soc
		mkdir -p "$STRADDLE_RKNPU_ROOT/proc/device-tree" \
		    "$STRADDLE_RKNPU_ROOT/run/lock"
		printf 'rockchip,%s\0' $soc \
		    >"$STRADDLE_RKNPU_ROOT/proc/device-tree/compatible"
		check_logits "-s rknpu -s rknpu" 512
	done
	unset LD_LIBRARY_PATH STRADDLE_RKNPU_FROM STRADDLE_RKNN \
	    STRADDLE_RKNPU_ROOT
fi
# Takes minutes under the emulator.
if command -v qemu-hexagon >/dev/null &&
    [ -e "$(dirname "$bin")/hexagon-domain" ]; then
	check_logits "-s hexagon" 512
fi
python3 "$shared/tools/tokconform.py" --straddle "$bin" \
    --dir "$shared/tokenizers"

# Chat templates: every case to the byte, or its error.
python3 "$shared/tools/tmplconform.py" --straddle "$bin" \
    --dir "$shared/templates"

# Faults that others reported: 77 means that one cannot be tried here.
for try in "$shared"/faults/*/try.py; do
	[ -e "$try" ] || continue
	rc=0
	STRADDLE=$bin python3 "$try" >"$made/log" 2>&1 || rc=$?
	fault=$(basename "$(dirname "$try")")
	case $rc in
	0)	echo "ok   $fault" ;;
	77)	echo "skip $fault: $(tail -n 1 "$made/log")" ;;
	*)	echo "FAIL $fault"; cat "$made/log"; exit 1 ;;
	esac
done

# The perplexity of the demo model's files must be as recorded, and that of files from
# straddle quantize must equal that of the recorded file of the same type.
check_ppl()	# FILE RECORDED LABEL
{
	"$bin" eval -q -m "$1" --ctx 256 --text "$shared/models/kjv-held.txt" \
	    --json | python3 -c 'import json, sys
p, want = json.load(sys.stdin)["perplexity"], float(sys.argv[1])
ok = abs(p / want - 1) <= 0.005
print("%s perplexity %.4f, %s (recorded %s)" % ("ok  " if ok else "FAIL", p,
      sys.argv[2], sys.argv[1]))
sys.exit(not ok)' "$2" "$3"
}
for pair in f16:27.25 q8_0:27.25 q4_0:27.48; do
	type=${pair%:*} recorded=${pair#*:}
	check_ppl "$shared/models/kjv-$type.gguf" "$recorded" "kjv-$type"
	"$bin" quantize -q "$shared/models/kjv-f16.gguf" "$made/$type.gguf" \
	    "$type" >/dev/null
	check_ppl "$made/$type.gguf" "$recorded" "straddle quantize $type"
done
cmp "$made/f16.gguf" "$shared/models/kjv-f16.gguf"

# The demo model's perplexity with each set of kernels must be close to the recorded
# one and to that of the reference kernels, which come first.
case $(uname -m) in
aarch64) masks="0 neon neon+dotprod all" ;;
*)	masks="0 avx2 avx2+avx_vnni all" ;;
esac
for mask in $masks; do
	[ $mask = all ] || export STRADDLE_CPU_MASK=$mask
	[ $mask != all ] || unset STRADDLE_CPU_MASK
	echo "$mask $("$bin" eval -q -m "$shared/models/kjv-q8_0.gguf" \
	    --ctx 256 --text "$shared/models/kjv-held.txt" --json)"
done | python3 -c 'import json, sys
bad = False
first = None
for line in sys.stdin:
    mask, text = line.split(" ", 1)
    p = json.loads(text)["perplexity"]
    first = first or p
    ok = abs(p / 27.25 - 1) <= 0.005 and abs(p / first - 1) <= 0.005
    bad |= not ok
    print("%s perplexity %.4f, kernels: %s (recorded 27.25, reference %.4f)"
        % ("ok  " if ok else "FAIL", p, mask, first))
sys.exit(bad or first is None)'
