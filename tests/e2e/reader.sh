#!/bin/bash
# tests/e2e/reader.sh - the confined process that parses the model's header and
# texts: what it holds, its cap, its loss.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

CHAT=(chat -m "$MODEL" -n 8 --temp 0 -q --ctx 512 -s a=cpu,threads=1)
LINES=("In the beginning" "And God said" "Let there be light")

# --- what it holds ---

has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
straddle_bg run -m "$MODEL" -p "In the beginning" -n 100000 --ctx 65536 \
    --ignore-eos -q -s a=cpu,threads=1 -v
check "text is printed" eventually has_text
check "there is one reader" equal 1 "$(readers | wc -l)"
pid=$(readers)
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"; }
if ! sanitized && grep -q "the reader: confined: .*(seccomp)" "$ERR"; then
	check "its system calls are filtered" equal 2 "$(status Seccomp)"
fi
check "it has no capability" equal 0000000000000000 "$(status CapEff)"
check "it cannot gain privileges" equal 1 "$(status NoNewPrivs)"
if [ "$(id -u)" = 0 ]; then
	# 0 to 2, the channel, the model.
	others() { find "/proc/$pid/fd" -type l -printf '%l\n' | grep -v \
	    -e '^/dev/null$' -e '^pipe:' -e '^socket:' -e "^$MODEL\$"; }
	check "it holds nothing but its streams, its channel and the model" \
	    is_blank "$(others || true)"
	check "it cannot write to the model" equal 0 "$(grep -c '^flags:.*[12]$' \
	    "/proc/$pid/fdinfo/$(find "/proc/$pid/fd" -lname "$MODEL" \
	    -printf '%f\n' | head -n 1)")"
fi
if grep -q "the reader: .* held by RLIMIT_DATA" "$ERR"; then
	check "it cannot exceed its cap" eval '! grep -E \
	    "^Max (data size|address space) +unlimited" "/proc/$pid/limits"'
fi
kill -KILL "$pid"
sleep 0.1
before=$(wc -c <"$OUT")
grows() { [ "$(wc -c <"$OUT")" -gt "$before" ]; }
check "a text that is being generated goes on without it" eventually grows
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends
check "no process is left" no_process_left

straddle plan -m "$MODEL" --json
check "it has a row in processes" equal "coordinator reader" "$("$PYTHON" -c '
import json, sys
print(*[p["name"] for p in json.load(open(sys.argv[1]))["processes"]])' "$OUT")"

# --- its loss ---

# talk PREPARE: one message after the other; PREPARE runs before each.
talk()
{
	local line n=0

	rm -f "$T/in"
	mkfifo "$T/in"
	INPUT=$T/in straddle_bg "${CHAT[@]}"
	exec 8>"$T/in"
	for line in "${LINES[@]}"; do
		$1
		echo "$line" >&8
		n=$((n + 1))
		check "message $n has an answer" eventually eval \
		    '[ "$(wc -l <"$OUT")" -ge $n ]'
	done
	exec 8>&-
	check "the end of the input ends the chat" command_ends
	check "exit 0" exits 0
	check "no process is left" no_process_left
}
kill_reader()
{
	check "there is a reader" eventually eval '[ -n "$(readers)" ]'
	kill -KILL $(readers) || true
}

talk true
cp "$OUT" "$T/answers"
talk kill_reader
check "answers are the same although the reader is lost before each message" \
    cmp -s "$T/answers" "$OUT"
check "each loss is reported" eval \
    '[ "$(grep -c "^straddle: the reader, .*signal 9.*another one is started" \
    "$ERR")" -ge 2 ]'

# A model that changes meanwhile cannot be read again.
cp "$MODEL" "$T/model.gguf"
CHAT=(chat -m "$T/model.gguf" -n 8 --temp 0 -q --ctx 512 -s a=cpu,threads=1)
rm -f "$T/in"
mkfifo "$T/in"
INPUT=$T/in straddle_bg "${CHAT[@]}"
exec 8>"$T/in"
echo "${LINES[0]}" >&8
check "a first answer" eventually eval '[ "$(wc -l <"$OUT")" -ge 1 ]'
touch "$T/model.gguf"
kill_reader
echo "${LINES[1]}" >&8
check "a changed model is refused" eventually stderr_has "model.gguf has changed"
exec 8>&-
check "that ends the chat" command_ends
check "no process is left" no_process_left

# --- losses at random moments ---

# The output is the same as without a loss, or the run fails because of the reader.
is_right()
{
	{ exits 0 && cmp -s "$1" "$OUT"; } ||
	    { [ "$RC" -gt 0 ] && [ "$RC" -lt 128 ] &&
	    stderr_has "the reader, which .* was killed by signal 9"; }
}

# nap MS: no process is needed for it.
rm -f "$T/never"
mkfifo "$T/never"
exec 9<>"$T/never"
nap()
{
	local s

	printf -v s 0.%03d "$1"
	read -rt "$s" -u 9 || true
}

# lose MS: wait for a reader; kill it after 0 to MS ms.  The command may end before.
lose()
{
	local born=/proc/$GROUP/task/$GROUP/children pid name pids tries=60

	while tries=$((tries - 1)) && [ $tries -gt 0 ]; do
		read -r pids <"$born" || [ -e "$born" ] ||
		    pids=$(pgrep -P "$GROUP") || return 0
		for pid in $pids; do
			read -rd '' name <"/proc/$pid/cmdline" || continue
			case $name in
			*reader*)
				nap $((RANDOM % $1))
				kill -KILL "$pid" || true
				return ;;
			esac
		done
		nap 2
	done
}

printf '%s\n' "${LINES[@]}" >"$T/lines"
# Commands, each with the time that its reader lives, in ms.
tokenize=(10 tokenize -m "$MODEL" -p "${LINES[0]}")
generate=(40 run -m "$MODEL" -p "${LINES[0]}" -n 8 --temp 0 -q -s a=cpu,threads=1)
chat=(250 chat -m "$MODEL" -n 8 --temp 0 -q --ctx 512 -s a=cpu,threads=1)
lost=0
for i in {1..21}; do
	case $((i % 3)) in
	0)	name=tokenize args=("${tokenize[@]}") ;;
	1)	name=run args=("${generate[@]}") ;;
	2)	name=chat args=("${chat[@]}") ;;
	esac
	if [ ! -e "$T/$name.true" ]; then
		INPUT=$T/lines straddle "${args[@]:1}"
		check "$name has an output" is_success
		cp "$OUT" "$T/$name.true"
	fi
	INPUT=$T/lines straddle_bg "${args[@]:1}"
	lose "${args[0]}"
	[ $((RANDOM % 2)) = 0 ] || lose "${args[0]}"
	check "run $i ends" command_ends
	check "run $i: its output is right, or it says why" is_right \
	    "$T/$name.true"
	check "run $i: no process is left" no_process_left
	n=$(grep -c "^straddle: the reader, .*signal 9" "$ERR") || true
	lost=$((lost + n))
done
check "readers were lost" [ $lost -gt 0 ]

e2e_end
