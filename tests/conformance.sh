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
    --dir "$shared/tokenizers" llama-spm phi-3
"$bin" eval -q -m "$shared/models/kjv-q8_0.gguf" --ctx 256 \
    --text "$shared/models/kjv-held.txt" --json |
    python3 -c 'import json, sys
p = json.load(sys.stdin)["perplexity"]
print("perplexity %.4f, recorded 27.25" % p)
sys.exit(abs(p / 27.25 - 1) > 0.005)'
