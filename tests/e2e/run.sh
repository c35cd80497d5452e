#!/bin/bash
# tests/e2e/run.sh - straddle run: the same text however the model is split,
# and each thing where it belongs: text on stdout, all else on stderr.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PROMPT="And God said, Let there be light: and there was light. And God saw the \
light, that it was good: and God divided the light from the darkness. And God \
called the light Day, and the darkness he called Night. And the evening and \
the morning were the first day. And God said, Let there be a firmament in the \
midst of the waters, and let it divide the waters from the waters."

greedy() { straddle run -m "$MODEL" --temp 0 --ctx 256 "$@"; }

# --- the first command of the README, and the same from flags alone ---

works "config/demo.conf runs" \
    run -c "$DEMO" -p "In the beginning" -n 32 --temp 0
demo=$(cat "$OUT")
check "there is text" test "$(wc -c <"$OUT")" -gt 32
works "flags alone run" run -m "$MODEL" --ctx 512 -p "In the beginning" \
    -n 32 --temp 0 -s cpu,cap=64MiB -s big=cpu,cap=64MiB -s cpu
check "flags and config make the same text" same "$demo" "$(cat "$OUT")"
works "flags lie over the file" run -c "$DEMO" -s one=cpu -p "In the" -n 4
check "-s replaces the sessions of the file" says '^one +cpu +embd'
check "and there is only that one" \
    same 1 "$(grep -Ec '^[a-z0-9]+ +cpu ' "$ERR")"

# --- stdout has the text, stderr the rest ---

works "a plain run" run -c "$DEMO" -p "In the beginning" -n 32 --temp 0
for name in cpu0 cpu1 cpu2 cpu3; do
	check "the table has a row of $name" says "^$name +cpu .* 64\.00 .*"
done
for head in cap weights KV compute staging rings runtime peak unaccounted \
    'enforced by'; do
	check "the table has a column $head" says "^session .* $head( |\$)"
done
check "a speed line" says '^load .* s, .* GB/s \| prompt 6 tokens, .* t/s \|'
check "with the generation" says 'generated 32 tokens, .* t/s \| first token'
check "a hash" says 'hash of the last logits: [0-9a-f]{16}$'
check "no table on stdout" same "$demo" "$(cat "$OUT")"
works "-q" run -c "$DEMO" -p "In the beginning" -n 32 --temp 0 -q
check "-q leaves stderr empty" is_empty "$ERR"
check "-q changes no text" same "$demo" "$(cat "$OUT")"

# --- JSON ---

works "--json" run -c "$DEMO" -p "In the beginning" -n 32 --temp 0 --json
check "JSON has the stable keys" has_keys run
check "JSON and plain text are equal" same "$demo" "$(field text)"
works "--json of control characters" \
    run -m "$MODEL" -p $'"\\\t\x01' -n 4 --json -q
check "they are JSON too" has_keys run

# --- huge pages: asked for, had, and why not ---

# A KV cache of 4 MiB and more asks.  What forbids them is inherited; where the
# kernel does not count them, that is said, and null in JSON.
works "huge pages in --json" run -m "$MODEL" --ctx 2048 -p In -n 2 --json
check "asked for in whole ones, had within the peak" "$PYTHON" -c '
import json, sys
for s in json.load(open(sys.argv[1]))["sessions"]:
    assert s["huge_asked"] >= 4 << 20 and s["huge_asked"] % (2 << 20) == 0, s
    assert s["huge"] is None or s["huge"] <= s["peak"], s
' "$OUT"
works "-v has a table of them" run -m "$MODEL" --ctx 2048 -p In -n 2 -v
check "which is not in the table of memory" \
    says '^cpu0 +[0-9]+\.[0-9]{2} +([0-9]+\.[0-9]{2}|unknown)$'
works "without -v" run -m "$MODEL" --ctx 2048 -p In -n 2
check "there is none" nothing "$(grep 'huge pages' "$ERR")"
# PR_SET_THP_DISABLE is 41.
without='import ctypes, os, sys
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])'
run_any "$PYTHON" -c "$without" "$BIN" run -m "$MODEL" --ctx 2048 -p In -n 2 -v
if says '^cpu0 +[0-9.]+ +unknown$'; then
	echo "huge pages are not counted here"
else
	check "forbidden, there are none" says '^cpu0 +[0-9]+\.00 +0\.00$'
	check "and why is said" \
	    says '^note: 1 of 1 sessions asked .* none: .*(DISABLE|never)'
fi

# --- one text and one hash, whatever the split ---

# agrees WHAT OPTION...: the hash and the text of the first call.
agrees()
{
	local what=$1 got

	shift
	greedy -p "$PROMPT" -n 24 --json "$@"
	got=$(grep -E '^ "(text|logits_hash)": "' "$OUT") || got=
	if [ -z "$want" ]; then want=$got; fi
	check "$what: the same text and logits" same "$want" "$got"
}

for kv in f16 f32 q8_0; do
	want=
	for n in 1 2 3 4 8 10; do
		agrees "$kv, $n sessions" --kv-type "$kv" $(sessions "$n")
	done
	all="${all:-} $want"
	agrees "$kv, batch 7 over 3" --kv-type "$kv" --batch 7 $(sessions 3)
done
check "KV types differ" same 3 "$(echo "$all" |
    grep -Eo '[0-9a-f]{16}' | sort -u | wc -l)"

want=
agrees "the default"
for batch in 1 7 64 512; do
	agrees "batch $batch" --batch $batch
	agrees "batch $batch over 4" --batch $batch $(sessions 4)
done
for threads in 1 2; do
	agrees "threads $threads" -s cpu,threads=$threads
	agrees "threads $threads over 3" $(sessions 3 cpu,threads=$threads)
done
agrees "threads differ" -s cpu,threads=2 -s cpu,threads=1
agrees "another context" --ctx 1024
straddle plan -m "$MODEL" --ctx 256
need=$(awk '$1 == "cpu0" { print int($NF) }' "$OUT")
agrees "caps too small for one" $(sessions 3 cpu,cap=$((need - 1))MiB)
first=$(cores | head -n 1) last=$(cores | tail -n 1)
agrees "both on one core" -s "cpu,cores=$first" -s "cpu,cores=$first"
if [ "$first" -ne "$last" ]; then
	agrees "a core each" -s "cpu,cores=$first" -s "cpu,cores=$last"
	agrees "one shared core" -s "cpu,cores=$first,$last" -s "cpu,cores=$last"
fi

# --- where the prompt comes from ---

printf '%s' "$PROMPT" >"$T/prompt"
greedy -p "$PROMPT" -n 8 -q
want=$(cat "$OUT")
greedy -f "$T/prompt" -n 8 -q
check "-f FILE is the same prompt" same "$want" "$(cat "$OUT")"
INPUT=$T/prompt greedy -f - -n 8 -q
check "-f - reads stdin" same "$want" "$(cat "$OUT")"
printf '\n' >>"$T/prompt"
works "a prompt with a line end" \
    run -m "$MODEL" -f "$T/prompt" --temp 0 -n 8 -q
works "an empty prompt goes on from the beginning" \
    run -m "$MODEL" -p "" --temp 0 -n 8 -q
check "and says something" test "$(wc -c <"$OUT")" -gt 8

printf 'In \377\376 the \300\200\355\240\200 a\000b \360\237' >"$T/bad"
works "invalid UTF-8 in the prompt" run -m "$MODEL" -f "$T/bad" -n 8 --temp 0
works "and as JSON" run -m "$MODEL" -f "$T/bad" -n 8 --temp 0 --json
check "which stays JSON" has_keys run
works "and as an argument" run -m "$MODEL" -p $'\377\376' -n 8 --temp 0

straddle tokenize -m "$MODEL" -p "$PROMPT"
n=$(wc -w <"$OUT")
refuses "a prompt longer than the context" 2 "$n tokens.* holds 64\b" \
    run -m "$MODEL" -p "$PROMPT" --ctx 64 --temp 0
refuses "whatever the sampling" 2 "$n tokens.* holds $((n - 1))\b" \
    run -m "$MODEL" -p "$PROMPT" --ctx $((n - 1))
works "one that fills the context" \
    run -m "$MODEL" -p "$PROMPT" --ctx "$n" -n 4
works "the context ends the text" \
    run -m "$MODEL" -p "In" --ctx 16 -n -1 --temp 0 --ignore-eos
check "and that is said" says 'context of 16 tokens is full'
works "-n 0 makes no text" run -m "$MODEL" -p "In" -n 0 --temp 0
check "none at all" is_empty "$OUT"

# --- sampling ---

sampled() { greedy -p "In the beginning" -n 24 -q --temp 1 "$@"; }

sampled --seed 7
want=$(cat "$OUT")
sampled --seed 7
check "a seed repeats itself" same "$want" "$(cat "$OUT")"
sampled --seed 7 $(sessions 4) --batch 1
check "over four sessions too" same "$want" "$(cat "$OUT")"
sampled --seed 8
check "another seed, another text" differ "$want" "$(cat "$OUT")"
sampled --seed 7 --top-k 1
greedy -p "In the beginning" -n 24 -q
cp "$OUT" "$T/greedy"
sampled --seed 7 --top-k 1
check "top-k 1 is greedy" cmp -s "$OUT" "$T/greedy"
greedy -p "In the beginning" -n 24 -q --repeat-penalty 1.5
check "a repeat penalty shows" differ "$(cat "$T/greedy")" "$(cat "$OUT")"
works "without a seed" run -m "$MODEL" -p "In the beginning" -n 24 --ctx 256
want=$(cat "$OUT")
seed=$(sed -n 's/^straddle: seed //p' "$ERR")
works "the one that was drawn" run -m "$MODEL" -p "In the beginning" \
    -n 24 --ctx 256 --seed "${seed:-none}"
check "repeats that run" same "$want" "$(cat "$OUT")"

# --- a prompt in pieces ---

batches()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["sessions"][0]["batches"])' "$OUT"
}

one=$(cores | head -n 1) two=$(cores | tail -n 1)
long=$(printf 'and the word of the LORD came unto me %.0s' 1 2 3 4 5 6 7 8 9 10 \
    11 12 13 14 15 16)
works "shared cores" run -m "$MODEL" -s 2*cpu -p "$long" -n 1 --temp 0 --json
check "a prompt goes in whole batches" same 2 "$(batches)"
if [ "$one" -ne "$two" ]; then
	works "cores of their own" run -m "$MODEL" -s "cpu,cores=$one" \
	    -s "cpu,cores=$two" -p "$long" -n 1 --temp 0 --json
	check "a prompt goes in pieces that overlap" test "$(batches)" -ge 3
fi

# --- several prompts ---

printf 'In the beginning\nAnd it came to pass\n\nThe LORD \377\n' >"$T/lines"
printf 'no line end' >>"$T/lines"
works "--prompts" run -c "$DEMO" --prompts "$T/lines" -n 12 --temp 0 -q
cp "$OUT" "$T/lines.json"
check "a JSON line for each prompt" same 5 "$(wc -l <"$OUT")"
n=0
while IFS= read -r line || [ -n "$line" ]; do
	n=$((n + 1))
	greedy --ctx 512 -p "$line" -n 12 --json -q
	check "line $n is what it is alone" \
	    same "$(field text)" "$(sed -n "${n}p" "$T/lines.json" |
	    "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["text"], end="")')"
done <"$T/lines"
printf 'one\0and\ntwo\n' >"$T/lines"
works "a token alone" run -c "$DEMO" -p one -n 1 --temp 0
check "no speed out of nothing" \
    says '\| generated 1 tokens, - t/s \|'
works "a NUL in a line" run -c "$DEMO" --prompts "$T/lines" -n 2 --temp 0 -q
check "does not end the file" same 2 "$(wc -l <"$OUT")"
: >"$T/lines"
works "no prompts" run -c "$DEMO" --prompts "$T/lines" -n 2 --temp 0 -q
check "no results" is_empty "$OUT"

e2e_end
