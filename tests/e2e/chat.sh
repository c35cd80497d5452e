#!/bin/bash
# tests/e2e/chat.sh - conversations: on a pipe and on a terminal; run --chat.
# The model has no chat template: messages go in as they are.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# talk ARGS...: the lines of $T/in; answers in $OUT.
talk() { INPUT=$T/in straddle chat -m "$MODEL" --temp 0 "$@"; }
line() { sed -n "$1p" "$T/answers"; }

# --- turns ---

printf '%s\n' "In the beginning" "And the LORD said" /stats >"$T/in"
talk -n 12
check "a conversation" is_success
cp "$OUT" "$T/answers"
check "one line an answer" test "$(wc -l <"$OUT")" -eq 2
check "what form it has is said" says 'has no chat template: messages go in'
# 6 and 11 tokens; then the twelfth, the line's five, 11 more.
check "only new tokens are read" says \
    '2 turns, 34 of [0-9]+ tokens .* 6 tokens read,.* 12 generated,.* until length$'
check "the memory table comes last" says '^caps: held by '
first=$(line 1) second=$(line 2)

# The stages' keys and values are those of the whole text at once.
works "the same as one prompt" run -q -m "$MODEL" --temp 0 -n 12 \
    -p "In the beginning$first
And the LORD said"
check "the second answer" same "$(cat "$OUT")" "$second"
for sessions in "-s 3*cpu,cap=64MiB --batch 2" "--kv-type f16 --batch 1"; do
	# shellcheck disable=SC2086
	talk -q -n 12 $sessions
	check "the same answers with $sessions" cmp -s "$OUT" "$T/answers"
done
check "-q says nothing else" says '^straddle: 2 turns'
check "nothing at all" test "$(wc -l <"$ERR")" -eq 1

printf 'In the beginning\r\n/quit\r\nnever read\r\n' >"$T/in"
talk -q -n 12
check "ends of lines as Windows has them" is_success
check "are no part of them" same "$(cat "$OUT")" "$first"
cp "$MODEL" "$T/model.gguf"
printf '%s\n' "In the beginning" "/save $T/model.gguf" >"$T/in"
INPUT=$T/in straddle chat -q -m "$T/model.gguf" -n 3
check "/save does not replace the model" cmp -s "$MODEL" "$T/model.gguf"
check "and says so" says "model.gguf: is the file that is read"
straddle chat -m "$MODEL" -n 0
check "no answers are no conversation" exits 2

printf '%s\n' "In the beginning" /reset "And the LORD said" "" \
    "/save $T/saved" /reset "In the beginning" /quit "never read" >"$T/in"
talk -q -n 12
check "with resets" is_success
cp "$OUT" "$T/answers"
check "three answers" test "$(wc -l <"$OUT")" -eq 3
check "a reset forgets" differ "$(line 2)" "$second"
check "everything" same "$(line 3)" "$first"
works "what it says alone" run -q -m "$MODEL" --temp 0 -n 12 \
    -p "And the LORD said"
check "is what it says after a reset" same "$(cat "$OUT")" "$(line 2)"
saved()
{
	"$PYTHON" - "$T/saved" "$1" "$2" <<-'END'
	import json, sys
	m = json.load(open(sys.argv[1]))
	assert [x["role"] for x in m] == ["user", "assistant"], m
	assert [x["content"] for x in m] == sys.argv[2:], m
	END
}
check "/save has what was said since" saved "And the LORD said" "$(line 2)"

printf 'In the beginning' >"$T/in"
talk -q -n 12
check "a last line without an end" same "$(cat "$OUT")" "$first"
true >"$T/in"
talk -q
check "nobody says anything" is_success
check "nobody answers" is_empty "$OUT"
printf '%s\n' "//In the beginning" >"$T/in"
talk -q -n 2
check "a message may begin with /" is_success
printf '%s\n' "In the" >"$T/in"
talk -q -n 4 --seed 3 --temp 1 --system "And God said"
check "a system text" is_success
talk -q --ctx 24
check "an answer ends with the context" test -s "$OUT"
check "which is no failure" exits 0

# --- what can not be answered ---

printf '%s\n' /nonsense "In the" "/save" "/save $T/no/where" >"$T/in"
talk -q -n 4
check "a command that there is not" says '/nonsense: no such command: /help'
check "a line fails, the others do not" test "$(wc -l <"$OUT")" -eq 1
check "/save needs a file" says '/save: no file'
check "that can be written" says "$T/no/where: cannot write: No such file"
check "and all fails" exits 1
{ seq -s ' and ' 200; echo "In the"; } >"$T/in"
talk -q -n 4 --ctx 32
check "a line that does not fit" says 'takes [0-9]+ tokens, and of the context of 32'
check "the next one does" test "$(wc -l <"$OUT")" -eq 1
check "and all fails too" exits 1
refuses "--system alone" 2 '--system is only valid with --chat' \
    run -m "$MODEL" -p hello --system x

# --- run --chat ---

works "run --chat" run --chat -m "$MODEL" --temp 0 -n 12 -p "In the beginning"
check "answers" same "$(cat "$OUT")" "$first"
check "and says how" says 'has no chat template'

# --- signals and a terminal ---

mkfifo "$T/pipe"
exec 7<>"$T/pipe"
echo "In the beginning" >&7
INPUT=$T/pipe straddle_bg chat -q -m "$MODEL" --temp 0 -n 4
has_answered() { [ "$(wc -l <"$OUT")" -ge 1 ]; }
check "it answers, and waits for the next line" in_time has_answered
kill -TERM "$GROUP"
check "SIGTERM ends the wait for a line" finishes
check "with exit 1" exits 1
check "and nothing is left" in_time ended
exec 7>&-

# A line put right, Ctrl-C amid an answer that nobody reads to its end (the
# terminal holds less of it), the line called back.
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
check "a terminal" is_success
e2e_end
