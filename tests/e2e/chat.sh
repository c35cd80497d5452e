#!/bin/bash
# tests/e2e/chat.sh - straddle chat on a pipe and on a terminal, and run --chat.
# The model has no chat template, so messages reach it as they are.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# talk ARGS...: chat with the lines of $T/in; the answers go to $OUT.
talk() { INPUT=$T/in straddle chat -m "$MODEL" --temp 0 "$@"; }
line() { sed -n "$1p" "$T/answers"; }

# --- turns ---

printf '%s\n' "In the beginning" "And the LORD said" /stats >"$T/in"
talk -n 12
check "a chat of two turns succeeds" is_success
cp "$OUT" "$T/answers"
check "each answer is one line" test "$(wc -l <"$OUT")" -eq 2
check "the missing chat template is reported" \
    stderr_has 'has no chat template: messages go in'
# The cache holds 34 tokens: the first turn reads 6 and adds all but the last of
# its 12; the second reads that one and its line's 5, and again adds 11.
check "a turn reads only its new tokens" stderr_has \
    '2 turns, 34 of [0-9]+ tokens .* 6 tokens read,.* 12 generated,.* until length$'
check "the memory table is printed at the end" stderr_has '^caps: held by '
first=$(line 1) second=$(line 2)

# After two turns the KV cache equals that of the whole text in one prompt.
check_success "the chat's text as one prompt" \
    run -q -m "$MODEL" --temp 0 -n 12 \
    -p "In the beginning$first
And the LORD said"
check "one prompt continues as the second turn did" \
    equal "$(cat "$OUT")" "$second"
for sessions in "-s 3*cpu,cap=64MiB --batch 2" "--kv-type f16 --batch 1"; do
	# shellcheck disable=SC2086
	talk -q -n 12 $sessions
	check "the same answers with $sessions" cmp -s "$OUT" "$T/answers"
done
check "-q prints the summary line" stderr_has '^straddle: 2 turns'
check "-q prints nothing else" test "$(wc -l <"$ERR")" -eq 1

printf 'In the beginning\r\n/quit\r\nnever read\r\n' >"$T/in"
talk -q -n 12
check "lines that end in CR LF are accepted" is_success
check "CR is not part of the message" equal "$(cat "$OUT")" "$first"
cp "$MODEL" "$T/model.gguf"
printf '%s\n' "In the beginning" "/save $T/model.gguf" >"$T/in"
INPUT=$T/in straddle chat -q -m "$T/model.gguf" -n 3
check "/save does not replace the model" cmp -s "$MODEL" "$T/model.gguf"
check "/save says that it would replace the model" \
    stderr_has "model.gguf: is the file that is read"
straddle chat -m "$MODEL" -n 0
check "chat -n 0 is refused" exits 2

printf '%s\n' "In the beginning" /reset "And the LORD said" "" \
    "/save $T/saved" /reset "In the beginning" /quit "never read" >"$T/in"
talk -q -n 12
check "a chat with /reset succeeds" is_success
cp "$OUT" "$T/answers"
check "it has three answers" test "$(wc -l <"$OUT")" -eq 3
check "after /reset the answer differs" differ "$(line 2)" "$second"
check "/reset clears all sequence state" equal "$(line 3)" "$first"
check_success "the message alone as a prompt" \
    run -q -m "$MODEL" --temp 0 -n 12 \
    -p "And the LORD said"
check "after /reset a message is answered as if it were the first" \
    equal "$(cat "$OUT")" "$(line 2)"
saved()
{
	"$PYTHON" - "$T/saved" "$1" "$2" <<-'END'
	import json, sys
	m = json.load(open(sys.argv[1]))
	assert [x["role"] for x in m] == ["user", "assistant"], m
	assert [x["content"] for x in m] == sys.argv[2:], m
	END
}
check "/save writes the messages since the last /reset" \
    saved "And the LORD said" "$(line 2)"

printf 'In the beginning' >"$T/in"
talk -q -n 12
check "a last line without a newline is answered" equal "$(cat "$OUT")" "$first"
true >"$T/in"
talk -q
check "empty input succeeds" is_success
check "empty input gets no answer" is_empty "$OUT"
printf '%s\n' "//In the beginning" >"$T/in"
talk -q -n 2
check "a message that begins with // succeeds" is_success
printf '%s\n' "In the" >"$T/in"
talk -q -n 4 --seed 3 --temp 1 --system "And God said"
check "--system succeeds" is_success
talk -q --ctx 24
check "an answer that fills the context is printed" test -s "$OUT"
check "a full context is not an error" exits 0

# --- bad lines ---

printf '%s\n' /nonsense "In the" "/save" "/save $T/no/where" >"$T/in"
talk -q -n 4
check "an unknown command is reported" \
    stderr_has '/nonsense: no such command: /help'
check "the other lines are answered" test "$(wc -l <"$OUT")" -eq 1
check "/save without a file is reported" stderr_has '/save: no file'
check "/save to an unwritable file is reported" \
    stderr_has "$T/no/where: cannot write: No such file"
check "a bad line makes the exit code 1" exits 1
{ seq -s ' and ' 50; echo "In the"; } >"$T/in"
talk -q -n 4 --ctx 32
check "a message longer than the context is reported" \
    stderr_has 'needs [0-9]+ tokens; [0-9]+ of 32 are left'
check "the next message is answered" test "$(wc -l <"$OUT")" -eq 1
check "a message that is too long makes the exit code 1" exits 1
check_refusal "--system without --chat" 2 '--system is only valid with --chat' \
    run -m "$MODEL" -p hello --system x

# --- run --chat ---

check_success "run --chat" \
    run --chat -m "$MODEL" --temp 0 -n 12 -p "In the beginning"
check "run --chat prints the same answer" equal "$(cat "$OUT")" "$first"
check "run --chat reports the missing chat template" \
    stderr_has 'has no chat template'

# --- signals and a terminal ---

mkfifo "$T/pipe"
exec 7<>"$T/pipe"
echo "In the beginning" >&7
INPUT=$T/pipe straddle_bg chat -q -m "$MODEL" --temp 0 -n 4
has_answered() { [ "$(wc -l <"$OUT")" -ge 1 ]; }
check "it answers and waits for the next line" eventually has_answered
kill -TERM "$GROUP"
check "SIGTERM while it waits for a line ends it" command_ends
check "SIGTERM while it waits for a line: exit 1" exits 1
check "SIGTERM while it waits for a line: no process is left" \
    eventually no_process_left
exec 7>&-

# On a terminal: edit a line, press Ctrl-C in the middle of an answer (the script
# stops reading it, so the terminal's buffer fills), then recall the line.
cat >"$T/terminal.py" <<'END'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
def until(what):
    global seen
    while what not in seen:
        r = os.read(fd, 4096)
        if not r:
            raise SystemExit("end of %r" % seen)
        seen += r
    seen = seen[seen.index(what) + len(what):]
until(b"> ")
os.write(fd, b"In the begining\x02\x02\x02n\r")
until(b"the LORD")
os.write(fd, b"\x03")
until(b"> ")
os.write(fd, b"\x1b[A")
until(b"In the beginning")
os.write(fd, b"\x15/stats\r")
until(b"until user")
until(b"> ")
os.write(fd, b"\x04")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
run_any "$PYTHON" "$T/terminal.py" "$BIN" chat -q -m "$MODEL" --temp 0 \
    --ctx 16384
check "editing, Ctrl-C and history work on a terminal" is_success
e2e_end
