# tests/tools/losses.sh - a generation in three sessions that loses some of its workers,
# and what it must end with all the same; sourced by e2e/recover.sh and
# e2e/hang.sh after e2e/lib.sh.

N=1000
! sanitized || N=200
THREE=(-s a=cpu,threads=1 -s b=cpu,threads=1 -s c=cpu,threads=1)
RUN=(run -m "$MODEL" -p "In the beginning" -n "$N" --ctx 4096 --ignore-eos
    --temp 0.8 --seed 5 "${THREE[@]}")

VIA=()			# what runs the program that is to lose workers

hash_of() { grep -o 'last logits: .*' "$1"; }
size() { wc -c <"$OUT"; }
losses() { grep -c 'restarting it (loss' "$ERR" || true; }

straddle "${RUN[@]}"
check "undisturbed" is_success
cp "$OUT" "$T/want"
WANT=$(hash_of "$ERR")
BYTES=$(size)

# lose FILE BYTES STEPS ARGS...: the program with ARGS, its workers lost as
# lose.py's STEPS say, at a random moment from FILE's first byte until it has
# BYTES (0: at once, while loading); sooner, if it was over before that.
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

# All but the line's end, which belongs to the shell.
begins_as_wanted()
{
	cmp -s -n "$(($(size) - 1))" "$OUT" "$T/want"
}

# as_if_nothing WHAT: exit 0, and the same text and logits.
as_if_nothing()
{
	check "$1: exit 0, nobody left" is_success
	check "$1: the same text" cmp -s "$T/want" "$OUT"
	check "$1: the same logits" same "$WANT" "$(hash_of "$ERR")"
}
