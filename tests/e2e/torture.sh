#!/bin/bash
# tests/e2e/torture.sh - fault injection: each allocation, map, memfd, descriptor,
# thread, process and io_uring fails in turn, in the coordinator and in workers,
# from the start to the last token; and workers send corrupt data.
#
#	TORTURE_S	seconds for each line below (default 1, a random sample)
#	TORTURE		"all": more commands than run
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

[ -x "$FAULTY" ] || e2e_skip "$FAULTY is not built"
make_model tiny q8_0 --layers 4
printf '%s\n' "ab" "cd" "ef" >"$T/prompts"
LIMIT=1200

torture()	# WHO:WHAT ARGS...
{
	run_any "$PYTHON" "$TESTS/tools/torture.py" "${TORTURE_S:-1}" "$FAULTY" "$@"
	sed -n '$p' "$OUT"
	check "$*" exits 0
	[ "$RC" = 0 ] || cat "$OUT"
}

TINY=(-m "$T/tiny.gguf" --ctx 64)
PAIR=("${TINY[@]}" -s 2*cpu,threads=2)
RUN=(run "${PAIR[@]}" -p a -n 3 --temp 0 -q)

for what in alloc mmap fd uring thread; do
	torture "worker:$what" "${RUN[@]}"
done
# The worker's only memfd is that of the seccomp filter; sanitizers have no filter.
sanitized || torture worker:memfd "${RUN[@]}"
for what in alloc mmap memfd fd fork; do
	torture "coordinator:$what" "${RUN[@]}"
done
torture worker:message "${RUN[@]}" --json
torture worker:slot "${RUN[@]}" --recover 2
QUANTIZE=(quantize "$T/tiny.gguf" "$T/out.gguf" Q4_0 --threads 2 --force --json)
for what in alloc thread message; do
	torture "converter:$what" "${QUANTIZE[@]}"
done
TOKENIZE=(tokenize "${TINY[@]::2}" -p ab)
for what in alloc mmap message image; do
	torture "reader:$what" "${TOKENIZE[@]}"
done
echo '{"messages": [{"role": "user", "content": "a"}]}' >"$T/vars.json"
RENDER=(render --chat-template ChatML --vars "$T/vars.json")
for what in alloc message; do
	torture "reader:$what" "${RENDER[@]}"
done
torture coordinator:alloc "${RENDER[@]}"
[ "${TORTURE:-}" = all ] || e2e_end

ONE=("${TINY[@]}" -s cpu,threads=1)
torture coordinator:alloc run "${ONE[@]}" -p a -n 3 --temp 0 --json -v
torture coordinator:alloc run "${PAIR[@]}" -q --prompts "$T/prompts" \
    --parallel 2 -n 3 --seed 1
torture worker:alloc run "${PAIR[@]}" -q --prompts "$T/prompts" \
    --parallel 2 -n 3 --seed 1
torture coordinator:alloc eval "${ONE[@]}" --ids "1 2 3" \
    --logits "$T/logits" --json
torture coordinator:alloc plan "${TINY[@]}" --json
torture coordinator:alloc plan -m "$T/tiny.gguf" --ctx 65536 -s cpu,cap=4MiB
torture coordinator:alloc plan -c "$DEMO" --json
torture coordinator:fd plan -c "$DEMO" --json
torture coordinator:alloc explain "${TINY[@]}" --json
torture worker:alloc explain "${TINY[@]}"
torture worker:message explain "${TINY[@]}" --json
torture worker:message devices --json
torture worker:message devices --verify --json
torture worker:message run "${ONE[@]}" -p a -n 3 --temp 0 -v
torture coordinator:alloc inspect "$T/tiny.gguf" --json
torture coordinator:alloc devices --json
torture worker:alloc devices --json
for what in alloc fd fork; do
	torture "coordinator:$what" "${QUANTIZE[@]}"
done
torture coordinator:alloc tokenize -m "$MODEL" -p "In the beginning"
for what in mmap memfd fd fork; do
	torture "coordinator:$what" "${TOKENIZE[@]}"
done
for what in alloc mmap message image; do
	torture "reader:$what" inspect "$T/tiny.gguf" --json
	torture "reader:$what" run "${PAIR[@]}" -q --prompts "$T/prompts" -n 3 \
	    --temp 0
done
torture coordinator:alloc detokenize -m "$MODEL" -p "1 2 3"
torture coordinator:alloc stress "${PAIR[@]}" --only "caps*" --json
torture worker:alloc stress "${PAIR[@]}" --only "caps*" --json
torture coordinator:alloc bench "${ONE[@]}" -p 8 -n 4 -r 1 --json
torture worker:alloc bench "${ONE[@]}" -p 8 -n 4 -r 1 --json

e2e_end
