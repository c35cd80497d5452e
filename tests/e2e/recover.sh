#!/bin/bash
# tests/e2e/recover.sh - recovery from lost workers: whichever workers are lost, and
# whenever, text and logits are those of an undisturbed run.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "$TESTS/tools/losses.sh"

HALF=$((BYTES / 2))

# --- each worker, by each signal ---

# A sanitizer would handle SIGSEGV itself, and writing its report can take longer
# than the watchdog's limit on a busy machine.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}handle_segv=0

for signal in 9 11; do
	cause=" signal $signal "
	for i in $(sample 1 0 1 2); do
		name=$(echo a b c | cut -d ' ' -f $((i + 1)))
		lose "$OUT" $HALF "$signal:$i" "${RUN[@]}"
		check_unaffected "$name, signal $signal"
		check "$name, signal $signal: the error names it and its memory" \
		    stderr_has "^straddle: session $name: .*$cause.*cap of .*loss 1 of"
		check "$name, signal $signal: the time to recover is printed" \
		    stderr_has \
		    '^straddle: recovered in [0-9.]+ s: .* tokens of '
		check "$name, signal $signal: one loss" equal 1 "$(losses)"
	done
done

# The parent may have set SIGCHLD to be ignored, which the program inherits.
VIA=("$PYTHON" -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])')
lose "$OUT" $HALF 9:1 "${RUN[@]}"
check_unaffected "SIGCHLD ignored"
check "SIGCHLD ignored: the worker's signal is still named" \
    stderr_has '^straddle: .* killed by signal 9 '
VIA=()

lose "$OUT" $HALF 9:0,9:2 "${RUN[@]}"
check_unaffected "two lost at once"
check "two lost at once: both are named" equal 2 "$(losses)"

lose "$OUT" $HALF 9:0,9:1,9:2 "${RUN[@]}"
check_unaffected "all lost at once"
check "all lost at once: all are named" equal 3 "$(losses)"
check "all lost at once: the number of losses is printed" \
    stderr_has '^lost workers: 3 \| recovered in [0-9.]+ s'

lose "$OUT" $HALF 9:0,9:1 "${RUN[@]}" --half-layers
check_unaffected "two workers that share a layer"
check "two workers that share a layer: the first has its attention" \
    stderr_has '^a .*[0-9]\.attn'
check "two workers that share a layer: the second has its FFN" \
    stderr_has '^b .* [0-9]\.ffn'

lose "$OUT" $HALF 9:1+new+9:-1 "${RUN[@]}"
check_unaffected "the replacement is lost too"
check "the replacement is lost too: two losses" equal 2 "$(losses)"

lose "$OUT" $HALF "9:1+new+sleep:$((RANDOM % 20))+9:0" "${RUN[@]}"
check_unaffected "a second loss during recovery"
check "a second loss during recovery: two losses" equal 2 "$(losses)"

lose "$OUT" $HALF 9:0+recovered+9:0+recovered+9:0 "${RUN[@]}"
check_unaffected "three losses, one after the other"

# A surviving worker maps new rings after each loss and must unmap the old ones.
lose "$OUT" $HALF held:0+9:1+recovered+9:-1+recovered+9:-1+recovered+held:0 "${RUN[@]}"
if exits 77; then
	echo "skipped: no permission to read the workers' /proc files"
else
	check_unaffected "a worker that survives three losses"
	check "a worker that survives three losses: it has the same rings" \
	    equal 1 "$(grep '^held: ' "$ERR" | sort -u | wc -l)"
	check "a worker that survives three losses: it has two rings" \
	    stderr_has '^held: [0-9]+ 2$'
fi

# --- rings with impossible counters ---

# check_corrupt LABEL NAME PATTERN STEPS: one loss, of NAME, whose message matches.
check_corrupt()
{
	lose "$OUT" $HALF "$4" "${RUN[@]}"
	check_unaffected "$1"
	check "$1: the error names session $2" \
	    stderr_has "^straddle: session $2: $3; .*loss 1"
	check "$1: one loss" equal 1 "$(losses)"
}

# The ring's writer is stopped first, because its next slot would overwrite the bad
# counter.  A ring that the coordinator reads or writes costs its other end.
check_corrupt "a bad head in the last ring" c \
    "the ring of logits is corrupt: .*" 19:2+corrupt:3:head
check_corrupt "a bad tail in the first ring" a \
    "the ring of tokens is corrupt: .*" 19:0+corrupt:0:tail
check_corrupt "an overfull first ring" a \
    "the ring of tokens is corrupt: .*" 19:0+corrupt:0:full
check_corrupt "a bad head in a ring between stages" b \
    "the ring into this stage is corrupt: .*" 19:0+corrupt:1:head+sleep:500+18:0
lose "$OUT" $HALF 19:2+corrupt:3:head "${RUN[@]}" --recover 0
check "a corrupt ring under --recover 0: exit 1" exits 1
check "a corrupt ring under --recover 0: the error names it" \
    stderr_has '^straddle: session c: the ring of logits is corrupt'
check "a corrupt ring under --recover 0: no process is left" no_process_left
check "a corrupt ring under --recover 0: the text so far is printed" \
    begins_as_wanted

# --- losses before the first token ---

for i in $(sample 1 1 2 3); do
	lose "$OUT" 0 "sleep:$((RANDOM % 50))+9:-1" "${RUN[@]}"
	check_unaffected "a loss during the start"
done

# --- caps that the plan uses up ---

# The neighbours keep the old rings mapped until they learn of the loss, and the
# rings' pages (9 MiB here) count against the new worker's cap until then.  The
# neighbours are stopped so that this takes longer than any other wait.  A worker's
# base memory varies by 1 MiB, in one start of twenty; under sanitizers by more.
if ! sanitized; then
	check_success "plan of three sessions" \
	    plan --json -m "$MODEL" --ctx 4096 --batch 2048 \
	    "${THREE[@]}"
	read -r -a CAPS <<<"$("$PYTHON" -c 'import json, sys
print(*[s["planned"] + 5 * 2**18 for s in json.load(sys.stdin)["sessions"]])' \
	    <"$OUT")"
	TIGHT=()
	for i in 0 1 2; do
		TIGHT+=(-s "${THREE[2 * i + 1]},cap=${CAPS[i]}")
	done
	lose "$OUT" $HALF 19:0,19:2+9:1+sleep:1500+18:0,18:2 \
	    "${RUN[@]:0:${#RUN[@]}-${#THREE[@]}}" --batch 2048 "${TIGHT[@]}"
	check_unaffected "caps equal to the plan"
	check "caps equal to the plan: one loss" equal 1 "$(losses)"
fi

# --- chat ---

# With the counting template no prompt begins as the one before: each turn cuts back
# what the stages hold.
printf '%s\n' "In the beginning" "And the LORD said" >"$T/in"
echo "{{ messages | length }}{% for m in messages %}{{ m.content }}" \
    "{% endfor %}" >"$T/counts.jinja"
for form in plain "$T/counts.jinja"; do
	CHAT=(chat -m "$MODEL" --temp 0 -n $((N / 2)) --ctx 4096 --ignore-eos
	    --chat-template "$form" "${THREE[@]}")
	INPUT=$T/in
	straddle "${CHAT[@]}"
	check "chat, undisturbed: ${form##*/}" is_success
	cp "$OUT" "$T/talk"
	lose "$OUT" $(($(size) - 1)) 9:1 "${CHAT[@]}"
	check "chat: exit 0, no process left: ${form##*/}" is_success
	check "chat: the same answers: ${form##*/}" cmp -s "$T/talk" "$OUT"
	check "chat: one loss: ${form##*/}" equal 1 "$(losses)"
done
INPUT=/dev/null

# --- several sequences ---

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
check "several sequences, undisturbed" is_success
cp "$OUT" "$T/many"
for i in $(sample 1 0 1 2); do
	lose "$OUT" $(($(wc -c <"$T/many") / 2)) "9:$i+recovered+9:$i" \
	    "${MANY[@]}"
	check "several sequences: exit 0, no process left" is_success
	check "several sequences: two losses" test "$(losses)" -ge 2
	check "several sequences: the same texts" cmp -s "$T/many" "$OUT"
done

# --- eval ---

seq -s ' ' 3 900 >"$T/ids"
EVAL=(eval -m "$MODEL" --ids-file "$T/ids" --batch 16 "${THREE[@]}")
straddle "${EVAL[@]}" --logits "$T/logits0"
check "eval, undisturbed" is_success
# A file appears when it is whole; a pipe gets the logits as they are computed.
cat >"$T/piped" <<-END
	#!/bin/sh
	rm -f "$T/pipe"
	mkfifo "$T/pipe"
	(cat "$T/pipe" >"$T/logits1" &)
	exec "\$@" --logits "$T/pipe"
END
chmod +x "$T/piped"
VIA=("$T/piped")
for i in $(sample 1 0 1 2); do
	lose "$T/logits1" $(($(wc -c <"$T/logits0") / 2)) "9:$i" "${EVAL[@]}"
	eventually group_is_empty
	check "eval: exit 0, no process left" is_success
	check "eval: one loss" equal 1 "$(losses)"
	check "eval: the same logits" cmp -s "$T/logits0" "$T/logits1"
done
VIA=()

# --- what a device notes for its next worker ---

# Each worker notes its session's name and aborts: as it opens its device, or in a
# batch.  The next one finds the note, also when others are lost meanwhile.
if [ -x "$FAULTY" ]; then
	export STRADDLE_FAULT
	for n in 0 7; do
		STRADDLE_FAULT=worker:memo:$n
		BIN=$FAULTY straddle "${RUN[@]}"
		check_unaffected "workers that abort at slot $n"
		check "workers that abort at slot $n: each once" equal 3 "$(losses)"
		for name in a b c; do
			check "workers that abort at slot $n: $name's memo" \
			    stderr_has "^straddle: session $name: its worker wrote: $name: found a memo of $name, with 42 at its end\$"
		done
	done
	unset STRADDLE_FAULT
fi

# --- losses that end the run ---

lose "$OUT" $HALF 9:0+recovered+9:0+recovered+9:0 "${RUN[@]}" --recover 2
check "one loss too many: exit 1" exits 1
check "one loss too many: the error names the limit" \
    stderr_has '^straddle: session .*signal 9.*giving up after 2 restarts \(--recover\)'
check "one loss too many: no process is left" no_process_left
check "one loss too many: the text so far is printed" begins_as_wanted

# A surviving worker acknowledges an epoch that was never announced.
if [ -x "$FAULTY" ]; then
	PROGRAM=$BIN BIN=$FAULTY
	export STRADDLE_FAULT=worker:epoch:1
	lose "$OUT" $HALF 9:0 "${RUN[@]}"
	unset STRADDLE_FAULT
	BIN=$PROGRAM
	check "a wrong epoch: exit 1" exits 1
	check "a wrong epoch: the error names session and epoch" \
	    stderr_has '^straddle: session [bc]: its worker acknowledged epoch 3, but '
	check "a wrong epoch: no process is left" no_process_left
fi

# A new worker must load the same model as the lost one.
cp "$MODEL" "$T/model.gguf"
RUN[2]=$T/model.gguf
lose "$OUT" $HALF "touch:$T/model.gguf+9:1" "${RUN[@]}"
check "a changed model: exit 4" exits 4
check "a changed model: the error names it" \
    stderr_has '^straddle: session b: .*model.gguf'
check "a changed model: no process is left" no_process_left
check "a changed model: the text so far is printed" begins_as_wanted

lose "$OUT" $HALF "patch:$T/model.gguf+9:1" "${RUN[@]}"
check "a patched model: exit 4" exits 4
check "a patched model: the error names it" \
    stderr_has '^straddle: session b: model.gguf has changed .*\(ctime\)'
cp "$MODEL" "$T/model.gguf"

# A model whose name was removed is still open.
lose "$OUT" 10 "rm:$T/model.gguf+9:1" "${RUN[@]}"
check_unaffected "a deleted model"
check "a deleted model: one loss" equal 1 "$(losses)"

e2e_end
