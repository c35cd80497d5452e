# tests/tools/losses.sh - lose workers of a generation in three sessions and check
# that its result does not change; e2e/recover.sh and e2e/hang.sh source it after
# e2e/lib.sh.

N=1000
! sanitized || N=200
THREE=(-s a=cpu,threads=1 -s b=cpu,threads=1 -s c=cpu,threads=1)
RUN=(run -m "$MODEL" -p "In the beginning" -n "$N" --ctx 4096 --ignore-eos
    --temp 0.8 --seed 5 "${THREE[@]}")

VIA=()			# command prefix of the program that loses workers

hash_of() { grep -o 'last logits: .*' "$1"; }
size() { wc -c <"$OUT"; }
losses() { grep -c 'restarting it (loss' "$ERR" || true; }

straddle "${RUN[@]}"
check "an undisturbed run" is_success
cp "$OUT" "$T/want"
WANT=$(hash_of "$ERR")
BYTES=$(size)

# lose FILE BYTES STEPS ARGS...: run the program with ARGS and do lose.py's STEPS
# when FILE has a random size from 1 to BYTES (0: at once, while it loads).  If the
# run ended before that, retry at a smaller size.
lose()
{
	local file=$1 most=$2 steps=$3 try at

	shift 3
	for try in 1 2 3 4 5 6; do
		at=$((RANDOM % (most / try + 1)))
		at=$((at > 0 || most == 0 ? at : 1))
		rm -f "$T/logits1"
		run_any "$PYTHON" "$TESTS/tools/lose.py" "$file" "$at" "$steps" \
		    "${VIA[@]}" "$BIN" "$@"
		[ "$RC" -eq 99 ] || break
	done
}

# The text so far is a prefix of $T/want; the program ends it with a newline.
begins_as_wanted()
{
	cmp -s -n "$(($(size) - 1))" "$OUT" "$T/want"
}

# check_unaffected LABEL: exit 0, and text and logits of the undisturbed run.
check_unaffected()
{
	check "$1: exit 0, no process left" is_success
	check "$1: the same text" cmp -s "$T/want" "$OUT"
	check "$1: the same logits" equal "$WANT" "$(hash_of "$ERR")"
}
