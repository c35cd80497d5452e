#!/bin/bash
# tests/e2e/invariance.sh - batch invariance: a token's logits depend on the
# model and on the tokens before it, and on nothing else, to the last bit.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

ROWS=224

# ids N VOCAB: N token ids that repeat only after a long time.
ids()
{
	awk -v n="$1" -v vocab="$2" 'BEGIN {
		for (x = 1; n-- > 0; x = (x * 75 + 74) % 65537)
			printf "%d ", x % vocab
	}'
}

# logits FILE OPTION...: of all rows of $model.
logits()
{
	local file=$1

	shift
	straddle eval -m "$model" --ids "$list" --logits "$file" --ctx 256 \
	    -q "$@"
}

# begin NAME FILE: the logits that all others must be equal to.
begin()
{
	name=$1 model=$2 first=$T/first.f32
	list=$(ids $ROWS "$(vocab_size)")
	rm -f "$first"
	logits "$first"
	check "$name: eval" is_success
	check "$name: $ROWS rows of finite numbers, no two alike" \
	    sane "$first" "$(vocab_size)"
}

vocab_size()
{
	if [ "$model" = "$MODEL" ]; then echo 2048; else echo 320; fi
}

sane()
{
	"$PYTHON" - "$1" "$2" "$ROWS" 2>>"$ERR" <<-'END'
	import array, math, sys
	path, vocab, nrows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
	a = array.array('f', open(path, 'rb').read())
	if sys.byteorder == 'big':
	    a.byteswap()
	rows = {a[i:i + vocab].tobytes() for i in range(0, len(a), vocab)}
	assert len(a) == nrows * vocab, len(a)
	assert all(map(math.isfinite, a)), 'not finite'
	assert len(rows) == nrows, 'rows are alike'
	assert max(a) - min(a) > 1, 'logits say nothing'
	END
}

# holds OPTION...: the same bits.
holds()
{
	rm -f "$T/other.f32"
	logits "$T/other.f32" "$@"
	check "$name: $*" is_equal
}

is_equal()
{
	is_success && cmp "$first" "$T/other.f32" 2>>"$ERR"
}

# Of two blocks of keys: in many batches and sessions, and row by row.
two_runs()
{
	holds --batch 1
	holds --batch 7 $(sessions 3 cpu,threads=1)
}

# What every model and every kernel variant must hold.
short_list()
{
	holds --batch 1
	holds --batch 7 $(sessions 2)
	holds --batch 64 $(sessions 3 cpu,threads=1)
	holds --batch 512 $(sessions 6 cpu,threads=2)
	holds --batch 1 $(sessions 4 cpu,threads=1)
}

one=$(cores | head -n 1) two=$(cores | tail -n 1)

begin "demo model" "$MODEL"
for case in $(sample 4 {1,2,3,4,8}:{7,64,512}); do
	holds --batch ${case#*:} $(sessions ${case%:*})
done
for case in $(sample 3 {1,2}:{1,3}:{1,64}); do
	IFS=: read -r threads n batch <<<"$case"
	holds --batch $batch $(sessions $n cpu,threads=$threads)
done
holds --batch 1 $(sessions 8 cpu,threads=1)
# Of the demo model's 8 layers of two halves, and the ends.
for n in $(sample 2 2 5 11 18); do
	holds --half-layers --batch 64 $(sessions $n)
	holds --half-layers --batch 7 $(sessions $n cpu,threads=1)
done
holds -s "cpu,cores=$one" -s "cpu,cores=$one"
holds -s cpu,threads=2 -s cpu,threads=1 -s cpu
if [ "$one" -ne "$two" ]; then
	holds -s "cpu,cores=$one" -s "cpu,cores=$two"
	holds -s "cpu,cores=$one,$two" -s "cpu,cores=$two" --batch 7
	holds -s "cpu,cores=$two" --batch 1
fi
for kv in f32 q8_0; do
	begin "demo model, KV $kv" "$MODEL"
	logits "$first" --kv-type $kv
	holds --kv-type $kv --batch 1 $(sessions 3)
	holds --kv-type $kv --batch 7 $(sessions 2 cpu,threads=1)
done

# Rows say nothing of those that follow.
begin "demo model" "$MODEL"
full=$first first=$T/prefix.f32
list=$(ids 50 2048)
head -c $((50 * 2048 * 4)) "$full" >"$first"
name="a prefix alone"
holds
holds --batch 7 $(sessions 3)
list=$(ids 51 2048)
name="one more id"
logits "$T/other.f32"
check "$name adds a row" differ "$(wc -c <"$first")" \
    "$(wc -c <"$T/other.f32")"

for type in f32 f16 bf16 q8_0 q4_0; do
	make_model $type $type
done
for type in $(sample 2 f32 f16 bf16 q8_0 q4_0); do
	begin "tiny $type" "$T/$type.gguf"
	short_list
done

# The other types: fewer runs, of two blocks of keys.
ROWS=96
for type in q4_1 q5_0 q5_1 iq4_nl mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_xs; do
	make_model $type $type
done
for type in $(sample 3 q4_1 q5_0 q5_1 iq4_nl mxfp4 q2_k q3_k q4_k q5_k q6_k \
    iq4_xs); do
	begin "$type" "$T/$type.gguf"
	two_runs
done
ROWS=224

# Other variants, each compared with itself: those below the best that this
# machine has, and the reference.
case $(uname -m) in
aarch64) masks="neon neon+dotprod" ;;
*)	masks="avx2 avx2+avx_vnni" ;;
esac
for mask in $masks; do
	export STRADDLE_CPU_MASK=$mask
	for type in $(sample 3 f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl \
	    mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_xs); do
		ROWS=96
		begin "$type, $mask" "$T/$type.gguf"
		two_runs
	done
done
# And in AVX-512 what the best of these cores do another way: BF16 by products
# of floats, MXFP4 by products with its scales.
if [ "$(uname -m)" != aarch64 ]; then
	export STRADDLE_CPU_MASK=avx2+avx512_vnni
	for type in bf16 mxfp4; do
		begin "$type, $STRADDLE_CPU_MASK" "$T/$type.gguf"
		two_runs
	done
fi
ROWS=224

export STRADDLE_CPU_MASK=0
begin "demo model, reference kernels" "$MODEL"
holds --batch 7 $(sessions 3)
holds --batch 64 $(sessions 8 cpu,threads=1)
for type in $(sample 1 f32 f16 bf16 q8_0 q4_0); do
	begin "tiny $type, reference kernels" "$T/$type.gguf"
	short_list
done

e2e_end
