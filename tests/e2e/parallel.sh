#!/bin/bash
# tests/e2e/parallel.sh - several prompts at once: each text is what it is
# alone, whatever its company, and comes in the order of the file.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

one=$(cores | head -n 1) two=$(cores | tail -n 1)
LONG=$(printf 'and the word of the LORD came unto me %.0s' 1 2 3 4 5 6 7 8 9)
{
	printf 'In the beginning\nAnd it came to pass\n\n%s\n' "$LONG"
	printf 'And\nAnd\nAnd\nThe LORD \377\n%s\nA\r\n' "$LONG $LONG"
	printf 'Blessed are the\nno line end'
} >"$T/lines"

# many OPTION...: the lines of $T/lines, without times.
many()
{
	straddle run -m "$MODEL" --prompts "$T/lines" --ctx 256 -q "$@"
}

is_equal()
{
	is_success && cmp "$T/want" "$OUT" 2>>"$ERR"
}

# holds OPTION...: over every cut, the same bytes as one after the other.
holds()
{
	local n batch

	many "$@" --parallel 1
	check "one by one: $*" is_success
	check "a line for each" same 12 "$(wc -l <"$OUT")"
	cp "$OUT" "$T/want"
	for n in 1 2 3 8; do
		for batch in 7 128; do
			many "$@" --parallel $n --batch $batch
			check "$n at once, batch $batch: $*" is_equal
			many "$@" --parallel $n --batch $batch $(sessions 3)
			check "over three sessions, $n at once, batch $batch: $*" \
			    is_equal
		done
	done
	many "$@" --parallel 16
	check "more sequences than prompts: $*" is_equal
	many "$@" --parallel 5 --batch 1
	check "more sequences than rows: $*" is_equal
	[ "$one" -ne "$two" ] || return 0
	many "$@" --parallel 6 -s "cpu,cores=$one" -s "cpu,cores=$two"
	check "groups on cores of their own: $*" is_equal
	many "$@" --parallel 6 --batch 2 -s "cpu,cores=$one" \
	    -s "cpu,cores=$two"
	check "small groups: $*" is_equal
}

holds -n 20 --temp 0
holds -n 20 --temp 0.8 --seed 5 --repeat-penalty 1.3

# pick INDEX KEY: of a line of $T/want.
pick()
{
	"$PYTHON" - "$T/want" "$1" "$2" <<-'END'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	print(lines[int(sys.argv[2])][sys.argv[3]], end='')
	END
}

# The text of line 3 was sampled with the seed it tells.
straddle run -m "$MODEL" --ctx 256 -q -p "$LONG" -n 20 --temp 0.8 \
    --seed "$(pick 3 seed)" --repeat-penalty 1.3 --json
check "a line can be had again, alone" same "$(pick 3 text)" "$(field text)"
check "its number of tokens is told" same 20 "$(pick 3 gen_tokens)"
check "equal prompts get different texts" \
    differ "$(pick 4 text)" "$(pick 5 text)"
check "the first prompt has the run's own seed" same 5 "$(pick 0 seed)"

# --- ends ---

printf 'In\nthe beginning of\n' >"$T/lines"
many -n -1 --temp 0 --ignore-eos --ctx 32 --parallel 2
check "a full context ends a text" same 2 "$(grep -c '"stop":"context"' "$OUT")"
many -n 5 --temp 0 --parallel 2
check "so does its length" same 2 "$(grep -c '"stop":"length"' "$OUT")"
check "with -q no times" differ 0 "$(grep -c '"gen_tokens":5' "$OUT")"
check "none at all" same 0 "$(grep -c '_s"' "$OUT")"
straddle run -m "$MODEL" --prompts "$T/lines" --ctx 64 -n 5 --temp 0 \
    --parallel 2
check "times, without" same 2 "$(grep -c '"ttft_s":.*"gen_s":' "$OUT")"
check "and a line of speeds" \
    says '^sequences at once: 2 \| rows a batch: [0-9.]+ \| '

# --- hundreds ---

seq 1 400 | sed 's/$/ and/' >"$T/lines"
many -n 3 --temp 0.8 --seed 9 --parallel 1
cp "$OUT" "$T/want"
check "hundreds of prompts, one by one" same 400 "$(wc -l <"$OUT")"
many -n 3 --temp 0.8 --seed 9 --parallel 8 $(sessions 2)
check "hundreds of prompts, eight at once" is_equal

# --- one that fails among others ---

printf 'In the\nAnd\nThe LORD\n' >"$T/lines"
many -n 8 --temp 0 --ctx 64
grep -v '"index":1' "$OUT" | sed 's/"index":[0-9]*//' >"$T/want"
printf 'In the\n%s\nThe LORD\n' "$LONG" >"$T/lines"
for n in 1 3; do
	many -n 8 --temp 0 --ctx 64 --parallel $n
	check "a line too long, $n at once: exit 1" exits 1
	check "is named, with what would help" \
	    says "^straddle: $T/lines:2: the prompt has .* holds 64: .*--ctx"
	check "its line says so" \
	    prints '^\{"index":1,.*"error":"the prompt has .* holds 64'
	check "nobody is left" ended
	grep -v '"index":1' "$OUT" | sed 's/"index":[0-9]*//' >"$T/others"
	check "the others are what they are without it" \
	    cmp -s "$T/want" "$T/others"
done
printf '%s\n%s\n' "$LONG" "$LONG" >"$T/lines"
many -n 8 --temp 0 --ctx 64 --parallel 2
check "none that can run: exit 1" exits 1
check "how many" says 'lines:1: .*\(and 1 more line'
check "a line for each all the same" same 2 "$(grep -c '"error"' "$OUT")"

# --- interrupted ---

# whole_lines: JSON, in order, the last ones marked.
whole_lines()
{
	"$PYTHON" - "$OUT" 2>>"$ERR" <<-'END'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	assert [l['index'] for l in lines] == list(range(len(lines)))
	cut = [l['index'] for l in lines if 'interrupted' in l]
	assert 1 <= len(cut) <= 4, cut
	assert all('stop' in l or 'interrupted' in l for l in lines)
	END
}

has_lines() { [ "$(wc -l <"$OUT")" -ge 5 ]; }

for what in INT KILL; do
	seq 1 100000 >"$T/lines"
	straddle_bg run -m "$MODEL" --prompts "$T/lines" --ctx 256 -n 40 -q \
	    --parallel 4 --recover 0 -s a=cpu,threads=1 -s b=cpu,threads=1
	check "lines come as they are done" in_time has_lines
	if [ $what = INT ]; then
		kill -INT "$GROUP"
	else
		kill -KILL "$(workers | tail -n 1)"
	fi
	check "SIG$what ends it" finishes
	check "SIG$what: exit 1" exits 1
	check "SIG$what: one line says why" same 1 "$(grep -vc ' seed ' "$ERR")"
	check "SIG$what: no worker is left" ended
	check "SIG$what: what was done is there, whole" whole_lines
done

# --- memory ---

kv_bytes()
{
	"$PYTHON" -c 'import json, sys
print(sum(s["kv"] for s in json.load(open(sys.argv[1]))["sessions"]))' "$OUT"
}

straddle plan -m "$MODEL" --ctx 1024 --json $(sessions 2 cpu,cap=1GiB)
want=$(kv_bytes)
straddle plan -m "$MODEL" --ctx 1024 --json $(sessions 2 cpu,cap=1GiB) \
    --parallel 8
check "each sequence has the whole context" \
    same $((8 * want)) "$(kv_bytes)"
refuses "more than the cap holds" 3 'does not fit.*would fit' \
    run -m "$MODEL" --ctx 1024 -s cpu,cap=64MiB --prompts "$T/lines" \
    --parallel 64

e2e_end
