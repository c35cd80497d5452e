#!/bin/bash
# tests/e2e/invariance.sh - batch invariance: a token's logits are a function of
# the model and of the tokens up to it; batch, split and threads change no bit.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

ROWS=224

# ids N VOCAB: print N token ids of a sequence with a long period.
ids()
{
	awk -v n="$1" -v vocab="$2" 'BEGIN {
		for (x = 1; n-- > 0; x = (x * 75 + 74) % 65537)
			printf "%d ", x % vocab
	}'
}

# logits FILE OPTION...: write the logits of $list under $model.
logits()
{
	local file=$1

	shift
	straddle eval -m "$model" --ids "$list" --logits "$file" --ctx 256 \
	    -q "$@"
}

# make_baseline NAME MODEL: write the logits that the next ones must equal.
make_baseline()
{
	name=$1 model=$2 first=$T/first.f32
	list=$(ids $ROWS "$(vocab_size)")
	rm -f "$first"
	logits "$first"
	check "$name: eval" is_success
	check "$name: $ROWS rows of finite numbers, all different" \
	    is_sane "$first" "$(vocab_size)"
}

vocab_size()
{
	if [ "$model" = "$MODEL" ]; then echo 2048; else echo 320; fi
}

is_sane()
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
	assert len(rows) == nrows, 'equal rows'
	assert max(a) - min(a) > 1, 'logits are nearly constant'
	END
}

# check_same OPTION...: eval with these options gives the baseline's bits.
check_same()
{
	rm -f "$T/other.f32"
	logits "$T/other.f32" "$@"
	check "$name: the same logits with '$*'" is_equal
}

is_equal()
{
	is_success && cmp "$first" "$T/other.f32" 2>>"$ERR"
}

# For a prompt of two blocks of keys: row by row, and in batches over sessions.
check_two_splits()
{
	check_same --batch 1
	check_same --batch 7 $(sessions 3 cpu,threads=1)
}

# For every weight type that all kernels have.
check_five_splits()
{
	check_same --batch 1
	check_same --batch 7 $(sessions 2)
	check_same --batch 64 $(sessions 3 cpu,threads=1)
	check_same --batch 512 $(sessions 6 cpu,threads=2)
	check_same --batch 1 $(sessions 4 cpu,threads=1)
}

one=$(cores | head -n 1) two=$(cores | tail -n 1)

make_baseline "demo model" "$MODEL"
for case in $(sample 4 {1,2,3,4,8}:{7,64,512}); do
	check_same --batch ${case#*:} $(sessions ${case%:*})
done
for case in $(sample 3 {1,2}:{1,3}:{1,64}); do
	IFS=: read -r threads n batch <<<"$case"
	check_same --batch $batch $(sessions $n cpu,threads=$threads)
done
check_same --batch 1 $(sessions 8 cpu,threads=1)
# The demo model has 18 parts: 8 layers of two halves, and both ends.
for n in $(sample 2 2 5 11 18); do
	check_same --half-layers --batch 64 $(sessions $n)
	check_same --half-layers --batch 7 $(sessions $n cpu,threads=1)
done
check_same -s "cpu,cores=$one" -s "cpu,cores=$one"
check_same -s cpu,threads=2 -s cpu,threads=1 -s cpu
if [ "$one" -ne "$two" ]; then
	check_same -s "cpu,cores=$one" -s "cpu,cores=$two"
	check_same -s "cpu,cores=$one,$two" -s "cpu,cores=$two" --batch 7
	check_same -s "cpu,cores=$two" --batch 1
fi
for kv in f32 q8_0; do
	make_baseline "demo model, KV $kv" "$MODEL"
	logits "$first" --kv-type $kv
	check_same --kv-type $kv --batch 1 $(sessions 3)
	check_same --kv-type $kv --batch 7 $(sessions 2 cpu,threads=1)
done

# A row does not depend on the rows after it.
make_baseline "demo model" "$MODEL"
full=$first first=$T/prefix.f32
list=$(ids 50 2048)
head -c $((50 * 2048 * 4)) "$full" >"$first"
name="the first 50 ids alone"
check_same
check_same --batch 7 $(sessions 3)
list=$(ids 51 2048)
name="one more id"
logits "$T/other.f32"
check "$name adds rows" differ "$(wc -c <"$first")" \
    "$(wc -c <"$T/other.f32")"

for type in f32 f16 bf16 q8_0 q4_0; do
	make_model $type $type
done
for type in $(sample 2 f32 f16 bf16 q8_0 q4_0); do
	make_baseline "tiny $type" "$T/$type.gguf"
	check_five_splits
done

# The other types: fewer runs, on two blocks of keys.
ROWS=96
for type in q4_1 q5_0 q5_1 iq4_nl mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_xs; do
	make_model $type $type
done
for type in $(sample 3 q4_1 q5_0 q5_1 iq4_nl mxfp4 q2_k q3_k q4_k q5_k q6_k \
    iq4_xs); do
	make_baseline "$type" "$T/$type.gguf"
	check_two_splits
done
ROWS=224

# Slower kernel variants than this machine's best, each compared with itself; then
# the reference kernels.
case $(uname -m) in
aarch64) masks="neon neon+dotprod" ;;
*)	masks="avx2 avx2+avx_vnni" ;;
esac
for mask in $masks; do
	export STRADDLE_CPU_MASK=$mask
	for type in $(sample 3 f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl \
	    mxfp4 q2_k q3_k q4_k q5_k q6_k iq4_xs); do
		ROWS=96
		make_baseline "$type, $mask" "$T/$type.gguf"
		check_two_splits
	done
done
# AVX-512 without its newest extensions has other code for two types: BF16 in
# products of floats, MXFP4 in products with its scales.
if [ "$(uname -m)" != aarch64 ]; then
	export STRADDLE_CPU_MASK=avx2+avx512_vnni
	for type in bf16 mxfp4; do
		make_baseline "$type, $STRADDLE_CPU_MASK" "$T/$type.gguf"
		check_two_splits
	done
fi
ROWS=224

export STRADDLE_CPU_MASK=0
make_baseline "demo model, reference kernels" "$MODEL"
check_same --batch 7 $(sessions 3)
check_same --batch 64 $(sessions 8 cpu,threads=1)
for type in $(sample 1 f32 f16 bf16 q8_0 q4_0); do
	make_baseline "tiny $type, reference kernels" "$T/$type.gguf"
	check_five_splits
done

e2e_end
