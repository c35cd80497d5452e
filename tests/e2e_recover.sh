#!/bin/bash
# tests/e2e_recover.sh - losing workers, and going on: whatever is lost and
# whenever, text and logits are what they would have been.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e.sh"

SEED=${STRADDLE_SEED:-$RANDOM}
RANDOM=$SEED
echo "STRADDLE_SEED=$SEED"

N=1200
! sanitized || N=300
THREE=(-s a=cpu,threads=1 -s b=cpu,threads=1 -s c=cpu,threads=1)
RUN=(run -m "$MODEL" -p "In the beginning" -n "$N" --ctx 4096 --ignore-eos
    --temp 0.8 --seed 5 "${THREE[@]}")

hash_of() { grep -o 'last logits: .*' "$1"; }
size() { wc -c <"$OUT"; }
reaches() { [ "$(size)" -ge "$1" ] || leader_ended; }
has_worker() { [ -n "$(workers)" ]; }
again_three() { [ "$(grep -c "^straddle: recovered" "$ERR")" -ge "$i" ]; }
three_or_over() { [ "$(workers | wc -l)" -ge 3 ] || leader_ended; }
under_way() { [ -s "$T/logits1" ] || leader_ended; }
losses() { grep -c 'restarting it (loss' "$ERR" || true; }

straddle "${RUN[@]}"
check "undisturbed" is_success
cp "$OUT" "$T/want"
WANT=$(hash_of "$ERR")
BYTES=$(size)

# All but the line's end, which belongs to the shell.
begins_as_wanted()
{
	cmp -s -n "$(($(size) - 1))" "$OUT" "$T/want"
}

# A random moment of the first two thirds, by what has been written.
begin()
{
	straddle_bg "${RUN[@]}" "$@"
	check "text comes" within 40 reaches $((1 + RANDOM % (BYTES * 2 / 3)))
	pids=($(workers))
	check "three workers" same 3 "${#pids[@]}"
}

# as_if_nothing WHAT: it ends, and with the same text and logits.
as_if_nothing()
{
	check "$1: it ends" finish_within "$LIMIT"
	check "$1: exit 0, nobody left" is_success
	check "$1: the same text" cmp -s "$T/want" "$OUT"
	check "$1: the same logits" same "$WANT" "$(hash_of "$ERR")"
}

# --- each of them, in each way ---

for signal in KILL SEGV; do
	how=" signal "
	! sanitized || [ $signal = KILL ] || how="exited with code"
	for i in 0 1 2; do
		name=$(echo a b c | cut -d ' ' -f $((i + 1)))
		begin
		kill -$signal "${pids[i]}"
		as_if_nothing "$name, SIG$signal"
		check "$name, SIG$signal: it is named, with its memory" says \
		    "^straddle: session $name: .*$how.*cap of .*loss 1 of"
		check "$name, SIG$signal: and how long it took" says \
		    '^straddle: recovered in [0-9.]+ s: .* tokens of 1 seq'
		check "$name, SIG$signal: one loss" same 1 "$(losses)"
	done
done

begin
kill -KILL "${pids[0]}" "${pids[2]}"
as_if_nothing "two at once"
check "two at once: both are named" same 2 "$(losses)"

begin
kill -KILL "${pids[@]}"
as_if_nothing "all at once"
check "all at once: all are named" same 3 "$(losses)"
check "all at once: and summed up" \
    says '^lost workers: 3 \| recovered in [0-9.]+ s'

# Whoever is new there, as soon as it is there.
is_new()
{
	victim=$(comm -13 <(printf '%s\n' "${pids[@]}" | sort) \
	    <(workers | sort) | head -n 1)
	[ -n "$victim" ]
}

begin
kill -KILL "${pids[1]}"
check "another comes" within 10 is_new
kill -KILL "$victim"
as_if_nothing "the one that came instead"
check "the one that came instead: two losses" same 2 "$(losses)"

begin
kill -KILL "${pids[1]}"
check "another comes" within 10 is_new
kill -KILL "${pids[0]}"
as_if_nothing "a survivor meanwhile"

# --- one that lives, and does not get on ---

for i in 0 1 2; do
	name=$(echo a b c | cut -d ' ' -f $((i + 1)))
	begin
	kill -STOP "${pids[i]}"
	as_if_nothing "$name hangs"
	check "$name hangs: it is named, and what it was held against" says \
	    "^straddle: session $name: .* hangs: .* takes .*stopped by a sig"
	check "$name hangs: one loss" same 1 "$(losses)"
done

# Ctrl-Z and fg: longer than any of them may do nothing.
begin
kill -STOP -- "-$GROUP"
sleep 7
kill -CONT -- "-$GROUP"
as_if_nothing "a stopped job"
check "a stopped job has lost nobody" same 0 "$(losses)"

# A debugger's is not a hang either.
traced()
{
	timeout 30 "$PYTHON" -c 'import ctypes, sys, time
pid, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
none = ctypes.c_void_p()
if libc.ptrace(16, pid, none, none) < 0:		# PTRACE_ATTACH
    sys.exit(1)
time.sleep(7)
libc.ptrace(17, pid, none, none)			# PTRACE_DETACH
' "$1"
}

begin
if traced "${pids[1]}"; then
	as_if_nothing "a worker that was looked at"
	check "a worker that was looked at is not lost" same 0 "$(losses)"
else
	echo "skipped: this process may not trace its children"
	kill -KILL "$GROUP"
	finish_within 10 || true
fi

# --- before there is text ---

for i in 1 2 3 4; do
	straddle_bg "${RUN[@]}"
	check "a worker" within 10 has_worker
	sleep "0.0$((RANDOM % 50))"
	victim=$(workers | tail -n 1)
	[ -z "$victim" ] || kill -KILL "$victim" || true
	as_if_nothing "a loss at the start"
done

# --- what belongs to whom ---

straddle_bg "${RUN[@]}"
check "text comes" within 40 reaches 10
before=$(workers | wc -l)
for i in 1 2 3; do
	victim=$(workers | head -n 1)
	kill -KILL "$victim"
	check "another comes" within 10 again_three
done
survivor=$(workers | head -n 1)
fds=$(ls "/proc/$survivor/fd" | wc -l)
maps=$(grep -c straddle-ring "/proc/$survivor/maps" || true)
check "a survivor maps two rings, of any number" test "$maps" -le 4
check "and has no more files than it needs" test "$fds" -le 14
as_if_nothing "three after each other"

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
MANY=(run -m "$MODEL" --prompts "$T/prompts" --parallel 3 -n $((N / 4))
    --ctx 1024 --ignore-eos --temp 0.8 --seed 9 -q "${THREE[@]}")
straddle "${MANY[@]}"
check "many, undisturbed" is_success
cp "$OUT" "$T/many"
for i in 0 1 2; do
	straddle_bg "${MANY[@]}"
	for turn in 1 2 3; do
		within 10 three_or_over
		sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
		victim=$(workers | sed -n "$((i + 1))p")
		[ -z "$victim" ] || kill -KILL "$victim" || true
	done
	check "many: they end" finish_within "$LIMIT"
	check "many: exit 0" is_success
	check "many: there was a loss" test "$(losses)" -ge 1
	check "many: every text is what it is" cmp -s "$T/many" "$OUT"
done

# --- eval ---

seq -s ' ' 3 900 >"$T/ids"
EVAL=(eval -m "$MODEL" --ids-file "$T/ids" --batch 16 "${THREE[@]}")
straddle "${EVAL[@]}" --logits "$T/logits0"
check "eval, undisturbed" is_success
for i in 0 1 2; do
	rm -f "$T/logits1"
	straddle_bg "${EVAL[@]}" --logits "$T/logits1"
	within 40 under_way
	victim=$(workers | sed -n "$((i + 1))p")
	[ -z "$victim" ] || kill -KILL "$victim" || true
	check "eval: it ends" finish_within "$LIMIT"
	check "eval: exit 0" is_success
	check "eval: the same logits" cmp -s "$T/logits0" "$T/logits1"
done

# --- where it ends ---

begin --recover 2
for i in 1 2 3; do
	victim=$(workers | tail -n 1)
	kill -KILL "$victim"
	[ "$i" = 3 ] || check "another comes" within 10 again_three
done
check "one loss too many ends it" finish_within 20
check "one loss too many: exit 1" exits 1
check "one loss too many is said to be" \
    says '^straddle: session .*signal 9.*2 are survived \(--recover\)'
check "one loss too many: nobody is left" ended
check "one loss too many: the text so far" begins_as_wanted

# What is loaded again must be what was loaded.
cp "$MODEL" "$T/model.gguf"
RUN[2]=$T/model.gguf
begin
touch "$T/model.gguf"
kill -KILL "${pids[1]}"
check "another model ends it" finish_within 20
check "another model: exit 4" exits 4
check "another model is named" says '^straddle: session b: .*model.gguf'
check "another model: nobody is left" ended
check "another model: the text so far" begins_as_wanted

# Deleted or replaced by name it is still the one that is open.
cp -p "$MODEL" "$T/model.gguf"
begin
rm "$T/model.gguf"
kill -KILL "${pids[1]}"
as_if_nothing "a model without a name"

e2e_end
