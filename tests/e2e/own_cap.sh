#!/bin/bash
# tests/e2e/own_cap.sh - the coordinator's own cap: its row, the kernel's limit, which
# no child inherits, peaks below it, and texts that are refused before they are read.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# own KEY: a value of the coordinator's row in the JSON output.
own()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["processes"][0][sys.argv[2]])' "$OUT" "$1"
}

straddle run -m "$MODEL" -p In -n 1 -q --json
check "the first process is the coordinator" equal coordinator "$(own name)"
if [ "$(own enforced_by)" != RLIMIT_DATA ]; then
	why=$(own no_group_because)
	check "without a limit the reason is given" differ None "$why"
	[ "$FAILED" -gt 0 ] || e2e_skip "no RLIMIT_DATA here: $why"
	e2e_end
fi
check "its cap is small" test "$(own cap)" -le $((32 << 20))
check "that is what it needs" equal "$(own cap)" "$(own planned)"
check "its limit is below its cap" test "$(own limit)" -lt "$(own cap)"

# --- the limit ---

limit_of()
{
	awk '/^Max data size/ { print $4, $5 }' "/proc/$1/limits"
}

before=$(limit_of $$)
straddle_bg run -m "$MODEL" -p In -n 100000 --ctx 65536 --ignore-eos -q \
    -s a=cpu,cap=512MiB,threads=1
has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
check "text is printed" eventually has_text
check "the coordinator has a limit" \
    test "$(limit_of "$GROUP" | cut -d' ' -f1)" -lt 100000000
check "only the soft one" equal "${before#* }" \
    "$(limit_of "$GROUP" | cut -d' ' -f2)"
kill -INT "$GROUP"
check "SIGINT ends the run" command_ends

# A launcher is what runs first in a child.
printf '#!/bin/sh\ngrep "data size" /proc/self/limits >>%s\nexec "$@"\n' \
    "$T/limits" >"$T/launcher"
chmod +x "$T/launcher"
STRADDLE_LAUNCH=$T/launcher straddle run -m "$MODEL" -p In -n 1 -q
check "no child inherits it" equal "$before" \
    "$(awk '{ print $4, $5 }' "$T/limits" | sort -u)"
check "children were seen" test "$(wc -l <"$T/limits")" -ge 2

# --- peaks ---

# within_cap LABEL ARGS...: straddle ARGS succeeds with a peak of at most its cap.
within_cap()
{
	local label=$1

	shift
	straddle "$@" -v
	check "$label succeeds" is_success
	check "$label has a peak below its cap" awk '
	$1 == "coordinator" && $NF == "RLIMIT_DATA" { n++; bad += $4 > $2 }
	END { exit n != 1 || bad }' "$ERR"
}

seq -f 'In the beginning %g God created the heaven' 1 400 >"$T/prompts"
seq -s ' ' 1 400 >"$T/text"
within_cap "run" run -m "$MODEL" -p In -n 64
within_cap "a long prompt" run -m "$MODEL" -f "$T/text" -n 16 --ctx 4096 --batch 512
within_cap "a long context" run -m "$MODEL" -p In -n 4 --ctx 131072 \
    --kv-type q8_0
within_cap "three sessions and a penalty" run -m "$MODEL" -p In -n 4 \
    --repeat-penalty 1.1 --repeat-last-n 1024 -s cpu -s cpu -s cpu
within_cap "a penalty over the whole context, under a small cap" run \
    -m "$MODEL" -p In -n 4 --repeat-penalty 1.1 --repeat-last-n -1 \
    --coordinator-cap 24MiB
within_cap "many prompts" run -m "$MODEL" --prompts "$T/prompts" --parallel 32 \
    -n 24 --ctx 128
within_cap "eval" eval -m "$MODEL" --text "$T/text" --ctx 256
seq -f 'And %g said unto the LORD' 1 60 >"$T/lines"
INPUT=$T/lines within_cap "a long conversation" chat -m "$MODEL" -n 64 \
    --context-shift --ctx 512

# --- a given cap ---

check_refusal "a cap that is less than the program is refused" 3 \
    'the coordinator has [0-9.]+ MiB of memory already, and its cap is 4' \
    inspect -m "$MODEL" --coordinator-cap 4MiB
check_refusal "a cap that is too small is refused with what is needed" 3 \
    'needs [0-9.]+ MiB for this model, a context of 1024 .*; its cap is 9\.00' \
    run -m "$MODEL" -p In -n 1 --coordinator-cap 9MiB -q
straddle plan -m "$MODEL" --coordinator-cap 24MiB --ctx 1000000 \
    --for-another-machine -s cpu,cap=64GiB
check "so is one that a long context makes too small" exits 3
check "plan says so" stderr_has \
    'a context of 1000000 tokens and 1 sequence; its cap is 24'
straddle run -m "$MODEL" -p In -n 1 --coordinator-cap 48MiB --json -q
check "a given cap is the cap" equal 50331648 "$(own cap)"
printf 'coordinator_cap = "48MiB"\n' >"$T/conf"
straddle run -c "$T/conf" -m "$MODEL" -p In -n 1 --json -q
check "also of a config" equal 50331648 "$(own cap)"

# --- texts that are too long ---

# peak_below BYTES COMMAND...: of all its processes.
peak_below()
{
	run_any "$PYTHON" -c 'import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(pid, 0)
if used.ru_maxrss * 1024 > int(sys.argv[1]):
    print(f"peak {used.ru_maxrss} KiB, limit {sys.argv[1]}", file=sys.stderr)
    sys.exit(99)
sys.exit(os.waitstatus_to_exitcode(status))' "$@"
}

LIMIT_BYTES=$((64 << 20))
truncate -s 100M "$T/large"
for cmd in "run --prompts" "tokenize -f" "eval --text" "detokenize -f"; do
	peak_below "$LIMIT_BYTES" "$BIN" ${cmd% *} -m "$MODEL" ${cmd#* } \
	    "$T/large"
	check "$cmd refuses a file of 100 MiB in little memory" exits 2
	check "$cmd says so" stderr_has 'large: it has [0-9]+ MiB or more'
done
head -c 1500000 "$T/large" | tr '\0' ' ' >"$T/spaces"
fits_not='it has [0-9]+ bytes or more, and the coordinator.s cap of 12\.0 MiB leaves room for [0-9]+: shorten it, or raise --coordinator-cap'
check_refusal "a file that does not fit into the cap is refused" 2 \
    "spaces: $fits_not" \
    tokenize -m "$MODEL" -f "$T/spaces" --coordinator-cap 12MiB
# A pipe does not say how much comes.
mkfifo "$T/pipe"
cat "$T/spaces" >"$T/pipe" &
INPUT=$T/pipe check_refusal "so is a text from a pipe" 2 "stdin: $fits_not" \
    tokenize -m "$MODEL" -f - --coordinator-cap 12MiB
wait $! || true
check_success "a larger cap allows it" tokenize -m "$MODEL" -f "$T/spaces" \
    --reader-cap 1GiB
check_refusal "a prompt that does not fit is refused" 2 \
    'the prompt has at least [0-9]+ bytes; the coordinator.s cap of [0-9.]+ MiB leaves room for [0-9]+: .*--coordinator-cap' \
    run -m "$MODEL" -f "$T/spaces" --ctx 1000000 --coordinator-cap 64MiB -q \
    -s cpu,cap=100GiB --overcommit

{ echo In; tr '\0' a <"$T/large"; echo; printf '"""'; tr '\0' a <"$T/large"
    printf '"""\n/save '; head -c 1000000 "$T/large" | tr '\0' b; echo
    echo And; } >"$T/chat"
INPUT=$T/chat peak_below "$LIMIT_BYTES" "$BIN" chat -m "$MODEL" -n 2 -q --temp 0
check "chat: lines of 100 MiB have no answer" exits 1
check "chat: the message says so" stderr_has \
    'the message has at least [0-9]+ bytes; the context of 1024 tokens'
check "chat: a command is not cut short" stderr_has \
    'a command of more than [0-9]+ bytes: not done'
check "chat: the lines around them have answers" eval \
    'equal 2 "$(wc -l <"$OUT")" && stderr_has "3 lines had no answer"'
printf '/load %s\n' "$T/load" >"$T/chat"
head -c 5000000 "$T/large" | tr '\0' ' ' >"$T/load"
INPUT=$T/chat straddle chat -m "$MODEL" -q --coordinator-cap 40MiB
check "chat: a file that does not fit is not loaded" stderr_has \
    'load: it has 5000000 bytes or more, and the coordinator.s cap of 40.0 MiB'

e2e_end
