#!/bin/bash
# tests/tools/models.sh - run two small public models: the same text and the same
# logits over one session and over four capped ones, with others in the batch, and
# after a loss; peaks below the caps; perplexity; every matrix in emulated Hexagon
# domains.  With the data in $SHARED, compare also with the answers and perplexities
# of another program.
#
# usage: SHARED=../shared tests/tools/models.sh
#
# tests/tools/fetch_models.py fetches the models.  Where it cannot, the last line
# begins with "skipped" and says why; the exit status is 0.
set -eu

MODELS="smollm2 gemma3"
SHARED=$(realpath -m "${SHARED:-../shared}")
declare -A FILE=() WHY=()

# Before lib.sh: that sets HOME, below which the cache is.
log=$(mktemp)
for name in $MODELS; do
	rc=0
	FILE[$name]=$("${STRADDLE_TESTS:-tests}/tools/fetch_models.py" \
	    "$name" 2>"$log") || rc=$?
	WHY[$name]=$(tail -n 1 "$log")
	case $rc in
	0)	;;
	77)	echo "${WHY[$name]}" ;;
	*)	cat "$log"; rm -f "$log"; exit 1 ;;
	esac
done
rm -f "$log"
[ -n "${FILE[smollm2]}${FILE[gemma3]}" ] || exit 0

. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

VECTORS=$SHARED/real HELD=$SHARED/models/kjv-held.txt
for path in "$VECTORS" "$HELD"; do
	[ -e "$path" ] || echo "skipped: comparing with another program: no $path"
done

same_text()
{
	"$PYTHON" -c 'import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert a["text"] == b["text"] and a["logits_hash"] == b["logits_hash"], (a, b)' \
	    "$@" 2>>"$ERR"
}

# Each session's peak, as the kernel counted it, is below its cap of $1 MiB and not
# above its plan.
peaks_below_caps()
{
	"$PYTHON" -c 'import json, sys
for s in json.load(open(sys.argv[1]))["sessions"]:
    print(s["name"], s["cap"], s["planned"], s["peak"], s["enforced_by"])
    assert s["cap"] == int(sys.argv[2]) << 20
    assert s["peak"] <= s["cap"]
    assert s["peak"] <= s["planned"] + max(0.02 * s["planned"], 4 << 20)' \
	    "$OUT" "$1" >>"$ERR" 2>&1
}

# lose_one ARGS...: kill a random worker of the four after a random part of the text
# in $T/want; earlier, if the program was quicker.
lose_one()
{
	local bytes try at

	bytes=$(wc -c <"$T/want")
	for try in 1 2 3 4 5 6; do
		at=$((RANDOM % (bytes / 2 / try) + 1))
		run_any "$PYTHON" "$TESTS/tools/lose.py" "$OUT" "$at" \
		    "9:$((RANDOM % 4))" "$BIN" "$@"
		[ "$RC" -eq 99 ] || break
	done
}

hash_of() { grep -o 'last logits: .*' "$1"; }

# check_text NAME MIB REGEX: the same for any sessions, with others in the batch, and
# after a loss.  REGEX is in the text.
check_text()
{
	local name=$1 four="-s 4*cpu,cap=$2MiB" model=(-m "${FILE[$1]}" --ctx 512)
	local long=(run "${model[@]}" -p "The capital of Italy is" -n 150
	    --temp 0.7 --seed 3 --ignore-eos)

	check_success "$name: one session" run "${model[@]}" -s cpu \
	    -p "The capital of Italy is" -n 24 --temp 0 --json
	check "$name: the text has $3" stdout_has "\"text\": .*($3)"
	cp "$OUT" "$T/one.json"
	# shellcheck disable=SC2086
	check_success "$name: four sessions of $2 MiB" run "${model[@]}" $four \
	    -p "The capital of Italy is" -n 24 --temp 0 --json
	check "$name: each peak is below its cap and as planned" \
	    peaks_below_caps "$2"
	check "$name: the same text and logits over one and four sessions" \
	    same_text "$T/one.json" "$OUT"

	cat >"$T/prompts" <<-'EOF'
	A recipe for apple pie begins with
	The first ten prime numbers are
	static int compare(const void *a, const void *b)
	Le chat est sur
	She opened the door and
	In physics, entropy is a measure of
	EOF
	check_success "$name: six prompts, one by one" run -q "${model[@]}" -s cpu \
	    --prompts "$T/prompts" -n 32 --temp 0.7 --seed 9
	cp "$OUT" "$T/lines"
	# shellcheck disable=SC2086
	check_success "$name: six prompts, four at once" run -q "${model[@]}" \
	    $four --prompts "$T/prompts" --parallel 4 -n 32 --temp 0.7 --seed 9
	check "$name: the same six texts" cmp -s "$OUT" "$T/lines"

	# shellcheck disable=SC2086
	check_success "$name: a longer text" "${long[@]}" $four
	cp "$OUT" "$T/want"
	cp "$ERR" "$T/want.err"
	# shellcheck disable=SC2086
	lose_one "${long[@]}" $four
	check "$name: exit 0 after the loss of a worker" is_success
	check "$name: a worker was lost" stderr_has '^lost workers: [1-9]'
	check "$name: the same text after the loss" cmp -s "$OUT" "$T/want"
	check "$name: the same logits after the loss" \
	    equal "$(hash_of "$T/want.err")" "$(hash_of "$ERR")"
}

# A conversation that follows the file's template, over one session and over four.
check_chat()
{
	local chat=(chat -q -m "${FILE[smollm2]}" --ctx 512 -n 24 --temp 0
	    --system "Answer with one word.")

	printf '%s\n' "What is the capital of Italy?" "And of Spain?" >"$T/in"
	INPUT=$T/in straddle "${chat[@]}" -s cpu
	check "chat over one session" is_success
	check "the first answer has Rome" grep -q Rome <(head -n 1 "$OUT")
	cp "$OUT" "$T/answers"
	INPUT=$T/in straddle "${chat[@]}" -s "4*cpu,cap=80MiB"
	check "chat over four sessions" is_success
	check "the same answers" cmp -s "$OUT" "$T/answers"
}

# check_perplexity NAME MIB CONTEXT RECORDED: over four sessions, within 0.5 % of
# llama.cpp's with its plain loops (tests/MEASURED.md).  Where that text is not there,
# a text of this tree is no surprise to the model, and the split changes no bit.
check_perplexity()
{
	local name=$1 model=(-m "${FILE[$1]}" --ctx "$3") four="4*cpu,cap=$2MiB"
	local text=$HELD

	[ -e "$text" ] || text=$TESTS/../README.md
	check_success "$name: perplexity over four sessions" \
	    eval -q "${model[@]}" -s "$four" --text "$text" --json
	PPL=$(field perplexity)
	echo "$name: perplexity $PPL of $(basename "$text"), context $3"
	if [ "$text" = "$HELD" ]; then
		check "$name: within 0.5 % of the recorded $4" awk \
		    "BEGIN { exit !($PPL / $4 < 1.005 && $4 / $PPL < 1.005) }"
		return 0
	fi
	check "$name: that of a trained model" awk "BEGIN { exit !($PPL < 60) }"
	check_success "$name: perplexity over one session" \
	    eval -q "${model[@]}" -s cpu --text "$text" --json
	check "$name: the same perplexity" equal "$PPL" "$(field perplexity)"
}

# check_answers NAME RECORD ONLY SPEC [OPTION...]: compare with the tokens that another
# program chose in exact arithmetic, after the prompts ONLY; all: after each.
check_answers()
{
	local name=$1 record=$2 only=$3 spec=$4 args=()

	shift 4
	[ "$only" = all ] || args=(--only "$only")
	run_any "$PYTHON" "$SHARED/tools/realconform.py" --straddle "$BIN" \
	    --model "${FILE[$name]}" --ref "$VECTORS/$record.json" \
	    --sessions "$spec" "${args[@]}" "$@"
	check "$name: the recorded answers over $spec, prompts $only" is_success
	cat "$OUT"
}

# check_domains NAME RECORD: two emulated Hexagon domains compute every matrix, and
# their answers are the recorded ones.  A prompt takes them a minute with Gemma, so
# that answers with FULL only.
check_domains()
{
	local spec="2*hexagon,cap=3.5GiB" only=0,3,7

	[ -n "${FULL-}" ] || only=$(sample 1 0 3 7)
	check_success "$1: explain of $spec" \
	    explain -m "${FILE[$1]}" --ctx 512 -s "$spec" --json
	check "$1: every matrix is in a domain" "$PYTHON" -c \
	    'import json, sys
ops = json.load(open(sys.argv[1]))["ops"]
cpu = {(x["op"], x["reason"]) for x in ops if x["where"] == "cpu"}
assert {op for op, _ in cpu} == {"get_rows", "rope_table"}, cpu' "$OUT"
	check_success "$1: a short text over $spec" run -m "${FILE[$1]}" \
	    --ctx 256 -s "$spec" -p "The capital of Italy is" -n 2 --json
	check "$1: the emulators take no more than planned" "$PYTHON" -c \
	    'import json, sys
for s in json.load(open(sys.argv[1]))["sessions"]:
    assert 0 < s["emulator_measured"] + s["peak_has_shared"] * \
        s["emulator_files"] <= s["emulator"], s' "$OUT"
	[ -n "${FULL-}" ] || [ "$1" = smollm2 ] || return 0
	[ ! -e "$VECTORS" ] || check_answers "$1" "$2" "$only" "$spec"
}

# some N: N of the 20 recorded prompts, drawn.
some() { sample "$1" $(seq 0 19) | paste -sd ,; }

if [ -n "${FILE[smollm2]}" ]; then
	check_text smollm2 80 Rome
	check_chat
	check_perplexity smollm2 80 512 12.972
	[ -z "${FULL-}" ] || check_perplexity smollm2 80 2048 11.604
fi
if [ -n "${FILE[gemma3]}" ]; then
	check_text gemma3 208 'city|country'
	check_perplexity gemma3 208 512 8.810
	[ -z "${FULL-}" ] || check_perplexity gemma3 208 2048 8.042
fi
if [ -e "$VECTORS" ]; then
	if [ -n "${FILE[smollm2]}" ]; then
		check_answers smollm2 smollm2-135m-q4_1 "$(some 5)" cpu
		check_answers smollm2 smollm2-135m-q4_1 all \
		    "4*cpu,cap=80MiB" --chats
	fi
	if [ -n "${FILE[gemma3]}" ]; then
		check_answers gemma3 gemma3-270m-q4_k_m "$(some 2)" cpu
		check_answers gemma3 gemma3-270m-q4_k_m "$(some 4)" \
		    "4*cpu,cap=208MiB"
	fi
fi
if command -v qemu-hexagon >/dev/null &&
    [ -e "$(dirname "$BIN")/hexagon-domain" ]; then
	[ -z "${FILE[smollm2]}" ] || check_domains smollm2 smollm2-135m-q4_1
	[ -z "${FILE[gemma3]}" ] || check_domains gemma3 gemma3-270m-q4_k_m
else
	echo "skipped: Hexagon domains: no qemu-hexagon or no hexagon-domain"
fi
e2e_end
