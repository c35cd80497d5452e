#!/bin/bash
# tests/e2e/recover.sh - losing workers, and going on: whatever is lost and
# whenever, text and logits are what they would have been.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "$TESTS/tools/losses.sh"

HALF=$((BYTES / 2))

# --- each of them, in each way ---

# A sanitizer would take SIGSEGV itself, and on a busy machine write its report
# for longer than nothing may move.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}handle_segv=0

for signal in 9 11; do
	how=" signal $signal "
	for i in $(sample 1 0 1 2); do
		name=$(echo a b c | cut -d ' ' -f $((i + 1)))
		lose "$OUT" $HALF "$signal:$i" "${RUN[@]}"
		as_if_nothing "$name, signal $signal"
		check "$name, signal $signal: it is named, with its memory" \
		    says "^straddle: session $name: .*$how.*cap of .*loss 1 of"
		check "$name, signal $signal: and how long it took" says \
		    '^straddle: recovered in [0-9.]+ s: .* tokens of '
		check "$name, signal $signal: one loss" same 1 "$(losses)"
	done
done

# Whoever starts the program may have children's ends ignored.
VIA=("$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])')
lose "$OUT" $HALF 9:1 "${RUN[@]}"
as_if_nothing "children ignored"
check "children ignored: how it ended" says '^straddle: .* killed by signal 9 '
VIA=()

lose "$OUT" $HALF 9:0,9:2 "${RUN[@]}"
as_if_nothing "two at once"
check "two at once: both are named" same 2 "$(losses)"

lose "$OUT" $HALF 9:0,9:1,9:2 "${RUN[@]}"
as_if_nothing "all at once"
check "all at once: all are named" same 3 "$(losses)"
check "all at once: and summed up" \
    says '^lost workers: 3 \| recovered in [0-9.]+ s'

lose "$OUT" $HALF 9:0,9:1 "${RUN[@]}" --half-layers
as_if_nothing "two that share a layer"
check "two that share a layer: one half" says '^a .*[0-9]\.attn'
check "two that share a layer: the other" says '^b .* [0-9]\.ffn'

lose "$OUT" $HALF 9:1+new+9:-1 "${RUN[@]}"
as_if_nothing "the one that came instead"
check "the one that came instead: two losses" same 2 "$(losses)"

lose "$OUT" $HALF "9:1+new+sleep:$((RANDOM % 20))+9:0" "${RUN[@]}"
as_if_nothing "a survivor meanwhile"
check "a survivor meanwhile: two losses" same 2 "$(losses)"

lose "$OUT" $HALF 9:0+mended+9:0+mended+9:0 "${RUN[@]}"
as_if_nothing "three after each other"

# Who stays takes new rings each time, and lets go of the old.
lose "$OUT" $HALF held:0+9:1+mended+9:-1+mended+9:-1+mended+held:0 "${RUN[@]}"
if exits 77; then
	echo "skipped: this process may not look into its workers"
else
	as_if_nothing "three beside one that stays"
	check "one that stays holds what it held" \
	    same 1 "$(grep '^held: ' "$ERR" | sort -u | wc -l)"
	check "which is two rings" says '^held: [0-9]+ 2$'
fi

# --- rings with impossible counters ---

# spoilt WHAT NAME WORDS STEPS: one loss, of NAME, with these WORDS.
spoilt()
{
	lose "$OUT" $HALF "$4" "${RUN[@]}"
	as_if_nothing "$1"
	check "$1: session $2 is named" says "^straddle: session $2: $3; .*loss 1"
	check "$1: one loss" same 1 "$(losses)"
}

# Who wrote it is stopped first: with its next slot it would put it right.  The
# two ends of the coordinator kill it as it is.
spoilt "the ring out of the last stage" c \
    "the ring of logits is corrupt: .*" 19:2+lie:3:head
spoilt "the ring into the first stage" a \
    "the ring of tokens is corrupt: .*" 19:0+lie:0:tail
spoilt "the ring into the first stage, full" a \
    "the ring of tokens is corrupt: .*" 19:0+lie:0:full
spoilt "a ring between two, by its writer" b \
    "the ring into this stage is corrupt: .*" 19:0+lie:1:head+sleep:500+18:0
lose "$OUT" $HALF 19:2+lie:3:head "${RUN[@]}" --recover 0
check "no loss is to be survived: exit 1" exits 1
check "no loss is to be survived: the ring is named" \
    says '^straddle: session c: the ring of logits is corrupt'
check "no loss is to be survived: nobody is left" ended
check "no loss is to be survived: the text so far" begins_as_wanted

# --- before there is text ---

for i in $(sample 1 1 2 3); do
	lose "$OUT" 0 "sleep:$((RANDOM % 50))+9:-1" "${RUN[@]}"
	as_if_nothing "a loss at the start"
done

# --- under a cap that the plan fills ---

# The neighbours hold the rings of before until they hear of the loss, and their
# pages, 9 MiB here, are the next worker's, too: longer than what else is waited
# for.  What a worker takes by itself differs a little; a sanitizer's by too much.
if ! sanitized; then
	works "a plan" plan --json -m "$MODEL" --ctx 4096 --batch 2048 \
	    "${THREE[@]}"
	read -r -a CAPS <<<"$("$PYTHON" -c 'import json, sys
print(*[s["planned"] + 2**19 for s in json.load(sys.stdin)["sessions"]])' \
	    <"$OUT")"
	TIGHT=()
	for i in 0 1 2; do
		TIGHT+=(-s "${THREE[2 * i + 1]},cap=${CAPS[i]}")
	done
	lose "$OUT" $HALF 19:0,19:2+9:1+sleep:1500+18:0,18:2 \
	    "${RUN[@]:0:${#RUN[@]}-${#THREE[@]}}" --batch 2048 "${TIGHT[@]}"
	as_if_nothing "a cap that the plan fills"
	check "a cap that the plan fills: one loss" same 1 "$(losses)"
fi

# --- a conversation ---

printf '%s\n' "In the beginning" "And the LORD said" >"$T/in"
CHAT=(chat -m "$MODEL" --temp 0 -n $((N / 2)) --ctx 4096 --ignore-eos
    "${THREE[@]}")
INPUT=$T/in
straddle "${CHAT[@]}"
check "a conversation, undisturbed" is_success
cp "$OUT" "$T/talk"
lose "$OUT" $(($(size) - 1)) 9:1 "${CHAT[@]}"
check "a conversation: exit 0, nobody left" is_success
check "a conversation: the same answers" cmp -s "$T/talk" "$OUT"
check "a conversation: one loss" same 1 "$(losses)"
INPUT=/dev/null

# --- many at once ---

cat >"$T/prompts" <<'END'
In the beginning
And it came to pass
Blessed are the
The LORD is my
And the king said unto
Now these are the names of
Then answered
Behold
END
MANY=(run -m "$MODEL" --prompts "$T/prompts" --parallel 3 -n $((N / 6))
    --ctx 1024 --ignore-eos --temp 0.8 --seed 9 -q "${THREE[@]}")
straddle "${MANY[@]}"
check "many, undisturbed" is_success
cp "$OUT" "$T/many"
for i in $(sample 1 0 1 2); do
	lose "$OUT" $(($(wc -c <"$T/many") / 2)) "9:$i+mended+9:$i" \
	    "${MANY[@]}"
	check "many: exit 0" is_success
	check "many: there was a loss" test "$(losses)" -ge 2
	check "many: every text is what it is" cmp -s "$T/many" "$OUT"
done

# --- eval ---

seq -s ' ' 3 900 >"$T/ids"
EVAL=(eval -m "$MODEL" --ids-file "$T/ids" --batch 16 "${THREE[@]}")
straddle "${EVAL[@]}" --logits "$T/logits0"
check "eval, undisturbed" is_success
for i in $(sample 1 0 1 2); do
	lose "$T/logits1" $(($(wc -c <"$T/logits0") / 2)) "9:$i" \
	    "${EVAL[@]}" --logits "$T/logits1"
	check "eval: exit 0" is_success
	check "eval: a loss" same 1 "$(losses)"
	check "eval: the same logits" cmp -s "$T/logits0" "$T/logits1"
done

# --- where it ends ---

lose "$OUT" $HALF 9:0+mended+9:0+mended+9:0 "${RUN[@]}" --recover 2
check "one loss too many: exit 1" exits 1
check "one loss too many is said to be" \
    says '^straddle: session .*signal 9.*giving up after 2 restarts \(--recover\)'
check "one loss too many: nobody is left" ended
check "one loss too many: the text so far" begins_as_wanted

# A survivor that claims to be where nobody sent it.
if [ -x "$FAULTY" ]; then
	PROGRAM=$BIN BIN=$FAULTY
	export STRADDLE_FAULT=worker:epoch:1
	lose "$OUT" $HALF 9:0 "${RUN[@]}"
	unset STRADDLE_FAULT
	BIN=$PROGRAM
	check "in another epoch: exit 1" exits 1
	check "in another epoch: who, and which" \
	    says '^straddle: session [bc]: its worker acknowledged epoch 3, but '
	check "in another epoch: nobody is left" ended
fi

# What is loaded again must be what was loaded.
cp "$MODEL" "$T/model.gguf"
RUN[2]=$T/model.gguf
lose "$OUT" $HALF "touch:$T/model.gguf+9:1" "${RUN[@]}"
check "another model: exit 4" exits 4
check "another model is named" says '^straddle: session b: .*model.gguf'
check "another model: nobody is left" ended
check "another model: the text so far" begins_as_wanted

# Deleted or replaced by name it is still the one that is open.
lose "$OUT" 10 "rm:$T/model.gguf+9:1" "${RUN[@]}"
as_if_nothing "a model without a name"
check "a model without a name: a loss" same 1 "$(losses)"

e2e_end
