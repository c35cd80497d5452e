#!/bin/bash
# tests/e2e/run.sh - straddle run: the same text for every split of the model, the
# text on stdout and everything else on stderr; prompts, sampling, JSON.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

PROMPT="And God said, Let there be light: and there was light. And God saw the \
light, that it was good: and God divided the light from the darkness. And God \
called the light Day, and the darkness he called Night. And the evening and \
the morning were the first day. And God said, Let there be a firmament in the \
midst of the waters, and let it divide the waters from the waters."

greedy() { straddle run -m "$MODEL" --temp 0 --ctx 256 "$@"; }

# --- the README's first command, and the same with flags alone ---

check_success "run with config/demo.conf" \
    run -c "$DEMO" -p "In the beginning" -n 32 --temp 0
demo=$(cat "$OUT")
check "run prints text" test "$(wc -c <"$OUT")" -gt 32
check_success "run with flags alone" \
    run -m "$MODEL" --ctx 512 -p "In the beginning" \
    -n 32 --temp 0 -s cpu,cap=64MiB -s big=cpu,cap=64MiB -s cpu
check "flags and config give the same text" equal "$demo" "$(cat "$OUT")"
check_success "run with -s and a config" \
    run -c "$DEMO" -s one=cpu -p "In the" -n 4
check "-s replaces the sessions of the file" stderr_has '^one +cpu +embd'
check "the only session is that of -s" \
    equal 1 "$(grep -Ec '^[a-z0-9]+ +cpu ' "$ERR")"

# --- stdout has the text, stderr the rest ---

check_success "a plain run" run -c "$DEMO" -p "In the beginning" -n 32 --temp 0
for name in cpu0 cpu1 cpu2 cpu3; do
	check "the table has a row for $name" \
	    stderr_has "^$name +cpu .* 64\.00 .*"
done
for head in cap weights KV compute staging rings runtime peak unaccounted \
    'enforced by'; do
	check "the table has a column $head" \
	    stderr_has "^session .* $head( |\$)"
done
check "the table has at most 80 columns" \
    is_blank "$(sed -n '/^memory,/,/^peak/p' "$ERR" | grep -E '.{81}')"
check "a line has the speeds of load and prompt" \
    stderr_has '^load .* s, .* GB/s \| prompt 6 tokens, .* t/s \|'
check "that line has the speed of generation" \
    stderr_has 'generated 32 tokens, .* t/s \| first token'
check "the hash of the last logits is printed" \
    stderr_has 'hash of the last logits: [0-9a-f]{16}$'
check "stdout has the text alone" equal "$demo" "$(cat "$OUT")"
check_success "run -v" run -c "$DEMO" -p "In the beginning" -n 4 --temp 0 -v
check "with -v a session's row has every column" stderr_has \
    '^session .* cap .* peak +unaccounted +enforced by$'
check_success "run of a session with a large cap" \
    run -m "$MODEL" -s cpu,cap=2GiB -p In -n 1
check "a column has GiB where its numbers are large" \
    stderr_has '^cpu0 +cpu +embd\+0-7\+head +2\.00 +6\.00 '
check "the units are below the names" \
    stderr_has '^ +GiB( +MiB){6}$'
check "the other processes follow in a table of their own" \
    equal "process coordinator reader" "$(sed -n '/^other processes, MiB$/,${
	s/^\(process\|coordinator\|reader\) .*/\1/p; }' "$ERR" | xargs)"
check_success "run -q" run -c "$DEMO" -p "In the beginning" -n 32 --temp 0 -q
check "-q leaves stderr empty" is_empty "$ERR"
check "-q does not change the text" equal "$demo" "$(cat "$OUT")"

# --- JSON ---

check_success "run --json" \
    run -c "$DEMO" -p "In the beginning" -n 32 --temp 0 --json
check "run --json has the stable keys" has_keys run
check "JSON and plain output have the same text" equal "$demo" "$(field text)"
check_success "run --json with control characters in the prompt" \
    run -m "$MODEL" -p $'"\\\t\x01' -n 4 --json -q
check "control characters are escaped in JSON" has_keys run

# --- huge pages: requested, obtained, and why not ---

# A KV cache of 4 MiB or more requests huge pages.  A parent may have disabled them.
# If the kernel does not count them, the table says "unknown" and JSON has null.
check_success "run --json with a large KV cache" \
    run -m "$MODEL" --ctx 2048 -p In -n 2 --json
check "whole huge pages are requested; those obtained are within the peak" \
    "$PYTHON" -c '
import json, sys
for s in json.load(open(sys.argv[1]))["sessions"]:
    assert s["huge_asked"] >= 4 << 20 and s["huge_asked"] % (2 << 20) == 0, s
    assert s["huge"] is None or s["huge"] <= s["peak"], s
' "$OUT"
check_success "run -v with a large KV cache" \
    run -m "$MODEL" --ctx 2048 -p In -n 2 -v
check "-v prints a table of huge pages" \
    stderr_has '^cpu0 +[0-9]+\.[0-9]{2} +([0-9]+\.[0-9]{2}|unknown)$'
check_success "run with a large KV cache" run -m "$MODEL" --ctx 2048 -p In -n 2
check "without -v there is no table of huge pages" \
    is_blank "$(grep 'huge pages' "$ERR")"
# PR_SET_THP_DISABLE is 41.
without='import ctypes, os, sys
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])'
run_any "$PYTHON" -c "$without" "$BIN" run -m "$MODEL" --ctx 2048 -p In -n 2 -v
if stderr_has '^cpu0 +[0-9.]+ +unknown$'; then
	echo "huge pages are not counted here"
else
	check "with huge pages disabled there are none" \
	    stderr_has '^cpu0 +[0-9]+\.00 +0\.00$'
	check "a note says why there are no huge pages" \
	    stderr_has '^note: 1 of 1 sessions asked .* none: .*(DISABLE|never)'
fi

# --- the same text and logits for every split ---

# check_same LABEL OPTION...: text and hash equal those of the first call, which
# finds $want empty.
check_same()
{
	local label=$1 got

	shift
	greedy -p "$PROMPT" -n 24 --json "$@"
	got=$(grep -E '^ "(text|logits_hash)": "' "$OUT") || got=
	if [ -z "$want" ]; then want=$got; fi
	check "$label: the same text and logits" equal "$want" "$got"
}

for kv in f16 f32 q8_0; do
	want=
	for n in 1 2 3 4 8 10; do
		check_same "$kv, $n sessions" --kv-type "$kv" $(sessions "$n")
	done
	all="${all:-} $want"
	check_same "$kv, batch 7, 3 sessions" \
	    --kv-type "$kv" --batch 7 $(sessions 3)
done
check "each KV type has its own logits" equal 3 "$(echo "$all" |
    grep -Eo '[0-9a-f]{16}' | sort -u | wc -l)"

want=
check_same "defaults"
for batch in 1 7 64 512; do
	check_same "batch $batch" --batch $batch
	check_same "batch $batch, 4 sessions" --batch $batch $(sessions 4)
done
for threads in 1 2; do
	check_same "threads=$threads" -s cpu,threads=$threads
	check_same "threads=$threads, 3 sessions" \
	    $(sessions 3 cpu,threads=$threads)
done
check_same "sessions with different threads" -s cpu,threads=2 -s cpu,threads=1
check_same "another context" --ctx 1024
straddle plan -m "$MODEL" --ctx 256 --json
need=$(planned_mib)
check_same "three sessions, because one cap is too small" \
    $(sessions 3 cpu,cap=$((need - 1))MiB)
first=$(cores | head -n 1) last=$(cores | tail -n 1)
check_same "two sessions on one core" \
    -s "cpu,cores=$first" -s "cpu,cores=$first"
if [ "$first" -ne "$last" ]; then
	check_same "a core per session" \
	    -s "cpu,cores=$first" -s "cpu,cores=$last"
	check_same "two sessions that share one of two cores" \
	    -s "cpu,cores=$first,$last" -s "cpu,cores=$last"
fi

# --- prompts ---

printf '%s' "$PROMPT" >"$T/prompt"
greedy -p "$PROMPT" -n 8 -q
want=$(cat "$OUT")
greedy -f "$T/prompt" -n 8 -q
check "-f FILE is the same prompt" equal "$want" "$(cat "$OUT")"
INPUT=$T/prompt greedy -f - -n 8 -q
check "-f - reads stdin" equal "$want" "$(cat "$OUT")"
printf '\n' >>"$T/prompt"
greedy -f "$T/prompt" -n 8 -q
check "-f drops one newline from the end" equal "$want" "$(cat "$OUT")"
INPUT=$T/prompt greedy -n 8 -q
check "a prompt that is redirected needs no option" equal "$want" "$(cat "$OUT")"
run_any bash -c 'cat "$1" | "$2" run "$3" --temp 0 --ctx 256 -n 8 -q' - \
    "$T/prompt" "$BIN" "$MODEL"
check "a prompt that is piped in needs no option" equal "$want" "$(cat "$OUT")"
run_any bash -c 'set -o pipefail
    { for i in {1..600}; do sleep 0.1; grep -q "waiting for a" "$4" && break; done
    cat "$1"; } | "$2" run "$3" --temp 0 --ctx 256 -n 1' \
    - "$T/prompt" "$BIN" "$MODEL" "$ERR"
check "a pipe that stays empty for long: exit 0" is_success
check "a pipe that stays empty for long is noted" \
    stderr_has '^straddle: waiting for a text on stdin$'
: >"$T/empty"
INPUT=$T/empty straddle run "$MODEL" --temp 0 -n 1
check "an empty stdin is no prompt" is_refusal 2 'no prompt: stdin is empty'
printf '\r\n' >"$T/crlf"
{ cat "$T/prompt"; cat "$T/prompt"; printf '\n'; } >"$T/two"
greedy -p "$(cat "$T/prompt")
$(cat "$T/prompt")
" -n 8 -q
want=$(cat "$OUT")
greedy -f "$T/two" -n 8 -q
check "-f keeps all other newlines" equal "$want" "$(cat "$OUT")"
straddle tokenize "$MODEL" --no-bos -f "$T/crlf"
check "tokenize keeps the exact bytes" test "$(wc -w <"$OUT")" -ge 2
check_success "an empty prompt" \
    run -m "$MODEL" -p "" --temp 0 -n 8 -q
check "an empty prompt generates text" test "$(wc -c <"$OUT")" -gt 8

printf 'In \377\376 the \300\200\355\240\200 a\000b \360\237' >"$T/bad"
check_success "invalid UTF-8 in the prompt" \
    run -m "$MODEL" -f "$T/bad" -n 8 --temp 0
check_success "invalid UTF-8 in the prompt, --json" \
    run -m "$MODEL" -f "$T/bad" -n 8 --temp 0 --json
check "invalid UTF-8 in the prompt, --json: the output is valid" has_keys run
check_success "invalid UTF-8 as an argument" \
    run -m "$MODEL" -p $'\377\376' -n 8 --temp 0

straddle tokenize -m "$MODEL" -p "$PROMPT"
n=$(wc -w <"$OUT")
check_refusal "a prompt longer than the context" 2 "$n tokens.* holds 64\b" \
    run -m "$MODEL" -p "$PROMPT" --ctx 64 --temp 0
check_refusal "a prompt one token longer than the context" 2 \
    "$n tokens.* holds $((n - 1))\b" \
    run -m "$MODEL" -p "$PROMPT" --ctx $((n - 1))
check_success "a prompt that fills the context" \
    run -m "$MODEL" -p "$PROMPT" --ctx "$n" -n 4
check_success "a generation that fills the context" \
    run -m "$MODEL" -p "In" --ctx 16 -n -1 --temp 0 --ignore-eos
check "a full context is reported" stderr_has 'context of 16 tokens is full'
check_success "run -n 0" run -m "$MODEL" -p "In" -n 0 --temp 0
check "-n 0 prints no text" is_empty "$OUT"

# --- sampling ---

sampled() { greedy -p "In the beginning" -n 24 -q --temp 1 "$@"; }

sampled --seed 7
want=$(cat "$OUT")
sampled --seed 7
check "a seed reproduces its text" equal "$want" "$(cat "$OUT")"
sampled --seed 7 $(sessions 4) --batch 1
check "a seed reproduces its text over four sessions" \
    equal "$want" "$(cat "$OUT")"
sampled --seed 8
check "another seed gives another text" differ "$want" "$(cat "$OUT")"
sampled --seed 7 --top-k 1
greedy -p "In the beginning" -n 24 -q
cp "$OUT" "$T/greedy"
sampled --seed 7 --top-k 1
check "top-k 1 is greedy" cmp -s "$OUT" "$T/greedy"
greedy -p "In the beginning" -n 24 -q --repeat-penalty 1.5
check "--repeat-penalty changes the text" \
    differ "$(cat "$T/greedy")" "$(cat "$OUT")"
# The context of 256 tokens holds all of this text.
greedy -p "In the beginning" -n 96 -q --repeat-penalty 1.2 --repeat-last-n 256
want=$(cat "$OUT")
greedy -p "In the beginning" -n 96 -q --repeat-penalty 1.2 --repeat-last-n -1
check "--repeat-last-n -1 looks back at the whole context" \
    equal "$want" "$(cat "$OUT")"
check_success "--seed -1" run -m "$MODEL" -p In -n 2 --ctx 64 --seed -1
check "--seed -1 draws a seed and prints it" stderr_has '^straddle: seed [0-9]+$'
check_success "sampling without --seed" \
    run -m "$MODEL" -p "In the beginning" -n 24 --ctx 256
want=$(cat "$OUT")
seed=$(sed -n 's/^straddle: seed //p' "$ERR")
check_success "sampling with the seed that was printed" \
    run -m "$MODEL" -p "In the beginning" \
    -n 24 --ctx 256 --seed "${seed:-none}"
check "the printed seed reproduces the text" equal "$want" "$(cat "$OUT")"

# The largest seed, which JSON libraries with signed integers cannot hold.
max=18446744073709551615
check_success "the largest seed" \
    run -m "$MODEL" -p In -n 2 --ctx 64 --seed $max --json -q
check "JSON has the largest seed to the digit" stdout_has "^ \"seed\": $max,\$"
printf 'one\ntwo\n' >"$T/lines"
check_success "--prompts with the largest seed" run -m "$MODEL" \
    --prompts "$T/lines" -n 2 --seed $max -q
check "a line's seed repeats its text" "$PYTHON" - "$OUT" "$BIN" "$MODEL" <<-'END'
	import json, subprocess, sys
	for line in open(sys.argv[1]):
	    o = json.loads(line)
	    assert 0 <= o['seed'] < 1 << 64 and o['seed'] > 1 << 63, o
	    text = subprocess.run([sys.argv[2], 'run', '-q', '-m', sys.argv[3],
	        '-p', o['prompt'], '-n', '2', '--seed', str(o['seed'])],
	        capture_output=True, text=True).stdout
	    assert text == o['text'] + '\n', (text, o)
	END

# --- splitting a prompt into chunks ---

batches()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["sessions"][0]["batches"])' "$OUT"
}

one=$(cores | head -n 1) two=$(cores | tail -n 1)
long=$(printf 'and the word of the LORD came unto me %.0s' 1 2 3 4 5 6 7 8 9 10 \
    11 12 13 14 15 16)
check_success "a long prompt on shared cores" \
    run -m "$MODEL" -s 2*cpu -p "$long" -n 1 --temp 0 --json
check "on shared cores a prompt goes in full batches" equal 2 "$(batches)"
if [ "$one" -ne "$two" ]; then
	check_success "a long prompt on separate cores" \
	    run -m "$MODEL" -s "cpu,cores=$one" \
	    -s "cpu,cores=$two" -p "$long" -n 1 --temp 0 --json
	check "on separate cores a prompt goes in overlapping chunks" \
	    test "$(batches)" -ge 3
fi

# --- several prompts ---

printf 'In the beginning\nAnd it came to pass\n\nThe LORD \377\n' >"$T/lines"
printf 'no line end' >>"$T/lines"
check_success "run --prompts" \
    run -c "$DEMO" --prompts "$T/lines" -n 12 --temp 0 -q
cp "$OUT" "$T/lines.json"
check "--prompts prints a line for each prompt" equal 5 "$(wc -l <"$OUT")"
n=0
while IFS= read -r line || [ -n "$line" ]; do
	n=$((n + 1))
	greedy --ctx 512 -p "$line" -n 12 --json -q
	check "--prompts: line $n has the text that its prompt gets alone" \
	    equal "$(field text)" "$(sed -n "${n}p" "$T/lines.json" |
	    "$PYTHON" -c 'import json, sys
print(json.load(sys.stdin)["text"], end="")')"
done <"$T/lines"
printf 'one\0and\ntwo\n' >"$T/lines"
check_success "generate one token" run -c "$DEMO" -p one -n 1 --temp 0
check "one token has no speed" \
    stderr_has '\| generated 1 token, - t/s \|'
check_success "a NUL byte in a line of --prompts" \
    run -c "$DEMO" --prompts "$T/lines" -n 2 --temp 0 -q
check "a NUL byte does not end the file" equal 2 "$(wc -l <"$OUT")"
: >"$T/lines"
check_success "an empty --prompts file" \
    run -c "$DEMO" --prompts "$T/lines" -n 2 --temp 0 -q
check "an empty --prompts file gives no results" is_empty "$OUT"

# --- the context of --prompts, and its rates ---

printf 'In the beginning\nAnd it came to pass\nThe LORD\n' >"$T/lines"
# kv: print the KV column of the first session.
kv() { awk '$1 == "cpu0" && $2 == "cpu" { print $6; exit }' "$ERR"; }
check_success "--prompts without --ctx" run -m "$MODEL" --prompts "$T/lines" \
    --parallel 2 -n 12 --temp 0
sed 's/,"ttft_s.*//' "$OUT" >"$T/short"
small=$(kv)
check_success "--prompts with --ctx 2048" run -m "$MODEL" --prompts "$T/lines" \
    --parallel 2 -n 12 --temp 0 --ctx 2048
check "the context does not change the texts" \
    cmp -s "$T/short" <(sed 's/,"ttft_s.*//' "$OUT")
check "without --ctx the context is what the prompts need" \
    awk -v a="$small" -v b="$(kv)" 'BEGIN { exit !(a > 0 && a < b / 8) }'
check "no text ends for want of context" \
    equal 3 "$(grep -c '"stop":"length"' "$T/short")"
check "reserved memory has a line of its own" \
    stderr_has '^memory reserved: [0-9.]+ [KMG]iB in [0-9.]+ s$'
check_success "--prompts, one at a time" run -m "$MODEL" --prompts "$T/lines" \
    -n 64 --temp 0 --ignore-eos
# Most of the time goes into 64 tokens, not into the few of a prompt.
check "a rate is tokens over their own time" "$PYTHON" - "$ERR" <<-'END'
	import re, sys
	err = open(sys.argv[1]).read()
	n, r = re.search(r'prompt (\d+) tokens, ([\d.]+) t/s', err).groups()
	m, g = re.search(r'generated (\d+) tokens, ([\d.]+) t/s', err).groups()
	all_s = float(re.search(r'all in ([\d.]+) s', err).group(1))
	assert int(n) / float(r) < all_s / 2, err
	assert int(n) / float(r) + (int(m) - 3) / float(g) < all_s * 1.1 + .01, err
	END

# --- a long prompt: progress, and the numbers of a run that is interrupted ---

"$PYTHON" -c 'print("And the LORD said unto him. " * 7000)' >"$T/long"
cat >"$T/interrupt.py" <<-'END'
	import os, pty, re, signal, subprocess, sys
	master, tty = pty.openpty()
	p = subprocess.Popen([sys.argv[1], 'run', '-m', sys.argv[2], '-f',
	    sys.argv[3], '--batch', '1', '--ctx', '65536', '-n', '4'],
	    stdin=subprocess.DEVNULL, stderr=tty)
	os.close(tty)
	err = b''
	while True:
	    try:
	        more = os.read(master, 4096)
	    except OSError:
	        break
	    if not more:
	        break
	    err += more
	    if p and re.search(rb'prompt: [0-9,]+ of [0-9,]+ tokens', err):
	        p.send_signal(signal.SIGINT)
	sys.stderr.write(err.decode())
	sys.exit(p.wait())
	END
run_any "$PYTHON" "$T/interrupt.py" "$BIN" "$MODEL" "$T/long"
check "a long prompt shows its progress on a terminal" \
    stderr_has 'prompt: [0-9,]+ of [0-9]+,[0-9]+ tokens, [0-9.]+ t/s'
check "an interrupted run says how much it read" \
    stderr_has '\| prompt [0-9,]+ of [0-9]+,[0-9]+ tokens, [0-9.]+ t/s \|'
check "an interrupted run has no first token" stderr_has '\| no first token'
check "an interrupted run exits with 1" exits 1
run_any env TERM=dumb "$PYTHON" "$T/interrupt.py" "$BIN" "$MODEL" "$T/lines"
check "a dumb terminal gets no escape sequences" \
    is_blank "$(grep "$(printf '\033')" "$ERR")"
check "it gets lines" stderr_has '^cpu0: loaded '

e2e_end
