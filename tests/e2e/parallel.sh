#!/bin/bash
# tests/e2e/parallel.sh - several prompts at once: each text is the same as when
# its prompt runs alone, and the results come in the order of the file.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

one=$(cores | head -n 1) two=$(cores | tail -n 1)
LONG=$(printf 'and the word of the LORD came unto me %.0s' 1 2 3 4 5 6 7 8 9)
{
	printf 'In the beginning\nAnd it came to pass\n\n%s\n' "$LONG"
	printf 'And\nAnd\nAnd\nThe LORD \377\n%s\nA\r\n' "$LONG $LONG"
	printf 'Blessed are the\nno line end'
} >"$T/lines"

# run_lines OPTION...: run the prompts of $T/lines; -q leaves out times.
run_lines()
{
	straddle run -m "$MODEL" --prompts "$T/lines" --ctx 256 -q "$@"
}

is_equal()
{
	is_success && cmp "$T/want" "$OUT" 2>>"$ERR"
}

# check_same_texts OPTION...: every split and number of sequences gives the bytes of
# one prompt after the other.
check_same_texts()
{
	local n batch

	run_lines "$@" --parallel 1
	check "one prompt at a time: $*" is_success
	check "a result for each prompt" equal 12 "$(wc -l <"$OUT")"
	cp "$OUT" "$T/want"
	for n in 1 2 3 8; do
		for batch in 7 128; do
			run_lines "$@" --parallel $n --batch $batch
			check "$n sequences, batch $batch: $*" is_equal
			run_lines "$@" --parallel $n --batch $batch $(sessions 3)
			check "three sessions, $n sequences, batch $batch: $*" \
			    is_equal
		done
	done
	run_lines "$@" --parallel 16
	check "more sequences than prompts: $*" is_equal
	run_lines "$@" --parallel 5 --batch 1
	check "more sequences than rows: $*" is_equal
	[ "$one" -ne "$two" ] || return 0
	run_lines "$@" --parallel 6 -s "cpu,cores=$one" -s "cpu,cores=$two"
	check "sequence groups on separate cores: $*" is_equal
	run_lines "$@" --parallel 6 --batch 2 -s "cpu,cores=$one" \
	    -s "cpu,cores=$two"
	check "small sequence groups: $*" is_equal
}

check_same_texts -n 20 --temp 0
check_same_texts -n 20 --temp 0.8 --seed 5 --repeat-penalty 1.3

# field_of INDEX KEY: print a field of one line of $T/want.
field_of()
{
	"$PYTHON" - "$T/want" "$1" "$2" <<-'END'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	print(lines[int(sys.argv[2])][sys.argv[3]], end='')
	END
}

# Line 3 says which seed its text was sampled with.
straddle run -m "$MODEL" --ctx 256 -q -p "$LONG" -n 20 --temp 0.8 \
    --seed "$(field_of 3 seed)" --repeat-penalty 1.3 --json
check "a prompt alone with its line's seed gives the same text" \
    equal "$(field_of 3 text)" "$(field text)"
check "a line has its number of tokens" equal 20 "$(field_of 3 gen_tokens)"
check "equal prompts get different texts" \
    differ "$(field_of 4 text)" "$(field_of 5 text)"
check "the first prompt has the run's own seed" equal 5 "$(field_of 0 seed)"

# --- ends ---

printf 'In\nthe beginning of\n' >"$T/lines"
run_lines -n -1 --temp 0 --ignore-eos --ctx 32 --parallel 2
check "a full context ends a text" \
    equal 2 "$(grep -c '"stop":"context"' "$OUT")"
run_lines -n 5 --temp 0 --parallel 2
check "-n ends a text" equal 2 "$(grep -c '"stop":"length"' "$OUT")"
check "-q keeps the token counts" differ 0 "$(grep -c '"gen_tokens":5' "$OUT")"
check "-q leaves out all times" equal 0 "$(grep -c '_s"' "$OUT")"
straddle run -m "$MODEL" --prompts "$T/lines" --ctx 64 -n 5 --temp 0 \
    --parallel 2
check "without -q each line has times" \
    equal 2 "$(grep -c '"ttft_s":.*"gen_s":' "$OUT")"
check "without -q there is a line of speeds" \
    stderr_has '^sequences at once: 2 \| rows per batch: [0-9.]+ \| '

# --- hundreds ---

seq 1 400 | sed 's/$/ and/' >"$T/lines"
run_lines -n 3 --temp 0.8 --seed 9 --parallel 1
cp "$OUT" "$T/want"
check "400 prompts, one at a time" equal 400 "$(wc -l <"$OUT")"
run_lines -n 3 --temp 0.8 --seed 9 --parallel 8 $(sessions 2)
check "400 prompts, eight sequences: the same texts" is_equal

# --- a bad prompt among others ---

printf 'In the\nAnd\nThe LORD\n' >"$T/lines"
run_lines -n 8 --temp 0 --ctx 64
grep -v '"index":1' "$OUT" | sed 's/"index":[0-9]*//' >"$T/want"
printf 'In the\n%s\nThe LORD\n' "$LONG" >"$T/lines"
for n in 1 3; do
	run_lines -n 8 --temp 0 --ctx 64 --parallel $n
	check "a prompt too long, $n sequences: exit 1" exits 1
	check "a prompt too long, $n sequences: the error names it and a remedy" \
	    stderr_has "^straddle: $T/lines:2: the prompt has .* holds 64: .*--ctx"
	check "a prompt too long, $n sequences: its line has the error" \
	    stdout_has '^\{"index":1,.*"error":"the prompt has .* holds 64'
	check "a prompt too long, $n sequences: no process is left" \
	    no_process_left
	grep -v '"index":1' "$OUT" | sed 's/"index":[0-9]*//' >"$T/others"
	check "a prompt too long, $n sequences: the other texts do not change" \
	    cmp -s "$T/want" "$T/others"
done
printf '%s\n%s\n' "$LONG" "$LONG" >"$T/lines"
run_lines -n 8 --temp 0 --ctx 64 --parallel 2
check "all prompts too long: exit 1" exits 1
check "all prompts too long: the error says how many" \
    stderr_has 'lines:1: .*\(and 1 more line'
check "all prompts too long: a line for each" \
    equal 2 "$(grep -c '"error"' "$OUT")"

head -c 1000000 /dev/zero | tr '\0' a >"$T/lines"
run_lines -n 8 --temp 0 --ctx 64
check "a prompt of 1 MB: its line has the error" \
    stdout_has '^\{"index":0,"prompt":"a+",.*"error":"the prompt has 1000000 '
check "a prompt of 1 MB: not all of it is printed" \
    test "$(wc -c <"$OUT")" -lt 10000

# --- interrupted ---

# whole_lines: every line is JSON, in order; those cut short are marked.
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

for signal in INT KILL; do
	seq 1 100000 >"$T/lines"
	straddle_bg run -m "$MODEL" --prompts "$T/lines" --ctx 256 -n 40 -q \
	    --parallel 4 --recover 0 -s a=cpu,threads=1 -s b=cpu,threads=1
	check "results are printed when they are done" eventually has_lines
	if [ $signal = INT ]; then
		kill -INT "$GROUP"
	else
		kill -KILL "$(workers | tail -n 1)"
	fi
	check "SIG$signal ends the run" command_ends
	check "SIG$signal: exit 1" exits 1
	check "SIG$signal: one line says why" \
	    equal 1 "$(grep -vc ' seed ' "$ERR")"
	check "SIG$signal: no process is left" no_process_left
	check "SIG$signal: the results so far are complete lines" whole_lines
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
check "each sequence has the full context" \
    equal $((8 * want)) "$(kv_bytes)"
check_refusal "more sequences than the cap holds" 3 'does not fit.*would fit' \
    run -m "$MODEL" --ctx 1024 -s cpu,cap=64MiB --prompts "$T/lines" \
    --parallel 64

e2e_end
