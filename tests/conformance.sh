#!/bin/bash
# tests/conformance.sh - logits and token ids against recorded ones, with the
# data and the tools that lie beside the tree in $SHARED.
#
# usage: SHARED=../shared tests/conformance.sh "MODEL ..."
set -eu
shared=${SHARED:-../shared}
bin=${STRADDLE_BIN:-build/straddle}
[ -d "$shared/vectors" ] || { echo "skipped: no $shared/vectors"; exit 0; }

# hold SESSIONS BATCH: every model.
hold()
{
	echo "sessions: $1, batch $2, kernels: ${STRADDLE_CPU_MASK-all}"
	# shellcheck disable=SC2086
	python3 "$shared/tools/conform.py" --straddle "$bin" \
	    --vectors "$shared/vectors" --args "$1 --batch $2" $models
}

models=$1
for sessions in "-s cpu" "-s cpu -s cpu -s cpu"; do
	for batch in 1 7 512; do
		hold "$sessions" $batch
	done
done
STRADDLE_CPU_MASK=0 hold "-s cpu" 512
python3 "$shared/tools/tokconform.py" --straddle "$bin" \
    --dir "$shared/tokenizers"

# The demo model's perplexity with each set of kernels: near what was recorded,
# and near the reference kernels', which come first.
case $(uname -m) in
aarch64) masks="0 neon neon+dotprod all" ;;
*)	masks="0 avx2 all" ;;
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
