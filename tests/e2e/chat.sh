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
    '2 turns, 34 of [0-9]+ tokens .* 6 tokens read,.* 12 generated,.* until its limit of tokens$'
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
    stderr_has "$T/no/where: cannot create .*: No such file"
check "a bad line makes the exit code 1" exits 1
{ seq -s ' and ' 50; echo "In the"; } >"$T/in"
talk -q -n 4 --ctx 32
check "a message longer than the context is reported" \
    stderr_has 'needs [0-9]+ tokens; [0-9]+ of 32 are left'
check "the next message is answered" test "$(wc -l <"$OUT")" -eq 1
check "a message that is too long makes the exit code 1" exits 1
check_refusal "--system without --chat" 2 '--system is only valid with --chat' \
    run -m "$MODEL" -p hello --system x

printf '%s\n' "In the" "/save $T/no/where" >"$T/in"
talk -q -n 4
check "a /save that failed makes the exit code 1" exits 1
check "a /save that failed is named at the end" stderr_has 'was not saved'

# --- files ---

# last_answer_is LABEL LINES ARGS...: a chat with these lines ends with the answer
# $want.
last_answer_is()
{
	local label=$1 lines=$2

	shift 2
	printf '%s\n' "$lines" >"$T/in"
	talk -q -n 12 "$@"
	check "$label: it succeeds" is_success
	check "$label" equal "$(tail -n 1 "$OUT")" "$want"
}

rm -f "$T/saved"
printf '%s\n' "In the beginning" "And the LORD said" "/save $T/saved" \
    "/save $T/copy" "And Moses" >"$T/in"
talk -q -n 12
want=$(tail -n 1 "$OUT")
last_answer_is "/load goes on as the conversation that /save wrote" \
    "/load $T/saved
And Moses"
last_answer_is "/load replaces the conversation so far" "In the land
/load  $T/saved 
And Moses"
last_answer_is "/undo leaves nothing of a turn" "/load $T/saved
In the land
/undo
And Moses"
# The penalty's window has the tokens of the turns that remain.
penalty="--repeat-penalty 1.5 --repeat-last-n 200"
rm -f "$T/saved"
printf '%s\n' "In the beginning" "And the LORD said" "/save $T/saved" \
    "In the beginning" >"$T/in"
# shellcheck disable=SC2086
talk -q -n 12 $penalty
want=$(tail -n 1 "$OUT")
# shellcheck disable=SC2086
last_answer_is "/load, and the repetition penalty" "/load $T/saved
In the beginning" $penalty
# shellcheck disable=SC2086
last_answer_is "/undo, and the repetition penalty" "/load $T/saved
And it came to pass
/undo
In the beginning" $penalty
printf '%s\n' "In the land" "/load $T/saved" "/stats" /undo /undo /undo \
    >"$T/in"
talk -n 12
check "/load says how much it was" stderr_has '/load: 2 turns, [0-9]+ of'
check "/stats says nothing of a turn that is not in the conversation" \
    stderr_has '2 turns, [0-9]+ of [0-9]+ tokens of the context$'
check "/undo says what is left" stderr_has '/undo: 1 turn, '
check "/undo without a turn is reported" stderr_has '/undo: there is no turn'
check "/undo without a turn makes the exit code 1" exits 1

echo precious >"$T/precious"
printf '%s\n' "In the" "/save $T/precious" >"$T/in"
talk -q -n 4
check "/save replaces no file" grep -q precious "$T/precious"
check "/save says how a file is replaced" stderr_has 'exists.*/save! FILE'
check "/save of a file that exists makes the exit code 1" exits 1
printf '%s\n' "In the" "/save! $T/precious" >"$T/in"
talk -q -n 4
check "/save! succeeds" is_success
check "/save! replaces a file" grep -q '"In the"' "$T/precious"
printf '%s\n' "In the \\" 'be\\' '"""' '' ' /quit' '"""' '"""x"""' \
    '""""' 'y"""' "//z" "/save $T/lines" '"""' 'lost' >"$T/in"
talk -q -n 1 --ctx 512
check "messages of several lines" "$PYTHON" -c 'import json, sys
m = json.load(open(sys.argv[1]))
assert [x["content"] for x in m[::2]] == ["In the \nbe\\\\", "\n /quit", "x",
    "\"\ny", "/z"], m' "$T/lines"
check "a block without an end is not sent" stderr_has 'no """ at its end'
check "a block without an end makes the exit code 1" exits 1
printf 'In \xff\xc3(\xe2\x82 the\0end\n/save %s\n/load %s\n' "$T/bytes" \
    "$T/bytes" >"$T/in"
talk -q -n 1
check "any bytes can be saved and loaded" is_success
check "a saved conversation is valid UTF-8" iconv -f UTF-8 -t UTF-8 \
    -o /dev/null "$T/bytes"

# refuses LABEL TEXT PATTERN: /load of a file with this text.
refuses()
{
	printf '%s' "$2" >"$T/bad"
	printf '%s\n' "In the beginning" "/load $T/bad" "And the LORD said" \
	    >"$T/in"
	talk -q -n 12
	check "/load refuses $1" stderr_has "$3"
	check "/load that refuses $1 changes nothing" \
	    equal "$(sed -n 2p "$OUT")" "$second"
	check "/load that refuses $1 makes the exit code 1" exits 1
}
u='{"role":"user","content":"u"}' a='{"role":"assistant","content":"a"}'
refuses "no JSON" $'[\e]0;x\a' 'bad:1: not JSON: .*x1b'
refuses "no list" '{}' 'not a JSON array of messages'
refuses "a number" '7' 'not a JSON array of messages'
refuses "a message that is none" '[1]' 'message 1: it must have'
refuses "an unknown role" "[$u,$a,{\"role\":\"tool\",\"content\":\"t\"}]" \
    'message 3: role "tool" where "user" must be'
refuses "an unknown key" '[{"role":"user","content":"u","name":"n"}]' \
    'message 1: it must have'
refuses "content in parts" '[{"role":"user","content":[]}]' \
    'message 1: it must have'
refuses "two users" "[$u,$u]" 'message 2: role "user" where "assistant"'
refuses "a user without an answer" "[$u,$a,$u]" \
    'message 3: a conversation ends with'
refuses "a second system message" '[{"role":"system","content":"s"},
    {"role":"system","content":"s"}]' 'message 2: role "system"'
refuses "a key twice" '[{"role":"user","role":"user","content":"u"}]' \
    'not JSON: duplicate'
refuses "a text longer than the context" "[$u,{\"role\":\"assistant\",
    \"content\":\"$(seq -s ' ' 2000)\"}]" 'needs [0-9]+ tokens; the context'
refuses "a text of more bytes than the context holds" "[$u,
    {\"role\":\"assistant\",\"content\":\"$(seq -s ' ' 20000)\"}]" \
    'turn 1 is too long; the context of [0-9]+ tokens holds at most'
printf 'In \xff the\nand\nor \xfe\xff\n' >"$T/in"
talk -n 1
check "bytes that are no text are noted once, with their message" equal \
    "$(grep -o 'note: [0-9].*' "$ERR" | tr '\n' ';')" \
    'note: 1 byte is not UTF-8;note: 2 bytes are not UTF-8;'
mkfifo "$T/fifo"
printf '/save %s/nul\0.json\n' "$T" >"$T/in"
talk -q
check "a command with a NUL byte is not done" stderr_has 'nul: a NUL byte'
check "it saves nothing" test ! -e "$T/nul"
check "it makes the exit code 1" exits 1
truncate -s 17M "$T/large"
printf '%s\n' "/load $T/fifo" "/load /dev/zero" "/load $T" "/load" \
    "/load $T/large" >"$T/in"
talk -q
check "/load of a large file is refused" stderr_has 'large: more than 16 MiB'
check "/load of a pipe is refused" stderr_has 'fifo: not a regular file'
check "/load of a device is refused" stderr_has 'zero: not a regular file'
check "/load without a file is reported" stderr_has '/load: no file'

# --- room in the context ---

printf '%s\n' /stats "In the beginning" /stats /reset /stats >"$T/in"
talk -q -n 4
check "/stats before the first answer has no last turn" \
    stderr_has ' 0 turns, 0 of [0-9]+ tokens of the context$'
check "one turn is one" stderr_has ' 1 turn, .*; the last turn: '
check "/stats after /reset says nothing of old turns" \
    equal "$(grep -c ' 0 turns, 0 of' "$ERR")" 2
printf '%s\n' "In the beginning" /clear /stats "/?" >"$T/in"
talk -q -n 4
check "other programs' /clear and /? work" is_success
check "/clear is /reset" stderr_has ' 0 turns, 0 of'
check "/? is /help" stderr_has '/undo        take back'

# The turns left after /drop or a shift, with the system message, go on as a new
# conversation: the same as a loaded one, whose context has the same tokens.
system="God said"
for more in "" "--temp 0.9 --seed 4" "--repeat-penalty 1.3 --repeat-last-n 100"
do
	printf '%s\n' "In the beginning" "And the LORD said" "And Moses" \
	    "/drop" "/save! $T/dropped" "And Aaron" >"$T/in"
	# shellcheck disable=SC2086
	talk -q -n 12 --system "$system" $more
	want=$(tail -n 1 "$OUT")
	# shellcheck disable=SC2086
	last_answer_is "/drop${more:+ with $more}" "/load $T/dropped
And Aaron" $more
	check "/drop forgets the oldest turn only" "$PYTHON" -c 'import json, sys
m = json.load(open(sys.argv[1]))
assert [x["content"] for x in m if x["role"] != "assistant"] == [
    "God said", "And the LORD said", "And Moses"], m' "$T/dropped"
done
printf '%s\n' /drop "In the beginning" /drop "And the LORD said" "/drop 2" \
    >"$T/in"
talk -q -n 12
check "/drop of all turns leaves an empty conversation" \
    equal "$(sed -n 2p "$OUT")" "$(sed -n 2p "$T/answers")"
check "/drop of nothing is reported" \
    stderr_has '/drop: there is no turn to drop'
check "/drop of more turns than there are is reported" \
    stderr_has '/drop: there is 1 turn to drop, not 2'

printf '%s\n' "In the beginning" "And the LORD said" "And Moses" "And Aaron" \
    >"$T/lines.in"
{ cat "$T/lines.in"; echo "/save $T/shifted"; } >"$T/in"
talk -q -n 12 --ctx 48 --system "$system" --context-shift
check "--context-shift goes on" is_success
check "--context-shift answers each message" \
    test "$(wc -l <"$OUT")" -eq 4
check "--context-shift says so" \
    stderr_has 'context of 48 tokens was full: the oldest turn was dropped'
want=$(tail -n 1 "$OUT")
"$PYTHON" - "$T/shifted" <<'END'
import json, sys
m = json.load(open(sys.argv[1]))
assert m[0] == {"role": "system", "content": "God said"}, m
assert m[-2]["content"] == "And Aaron" and len(m) >= 5, m
json.dump(m[:-2], open(sys.argv[1], "w"))
END
last_answer_is "what remains after a shift is a new conversation" \
    "/load $T/shifted
And Aaron"
cp "$T/lines.in" "$T/in"
talk -q -n -1 --ctx 48 --context-shift
check "an answer is shifted in its middle, and ends" is_success
talk -q -n 12 --ctx 48
check "without --context-shift there is a warning" \
    stderr_has '[0-9]+ of 48 tokens of the context are left: /drop'
check "the warning comes once" \
    equal "$(grep -c 'tokens of the context are left' "$ERR")" 1
printf '%s\n' "In the beginning" "And the LORD said" "And Moses" >"$T/in"
talk --ctx 64 --ignore-eos
check "an answer takes half of what is left" is_success
check "an answer that is cut off says so" \
    stderr_has 'cut off after [0-9]+ tokens, half of what was left'
check "each message has an answer" test "$(wc -l <"$OUT")" -eq 3

# --- the template ---

# Each turn is written anew; what is as before is not computed again.
printf '%s\n' "In the beginning" "And the LORD said" >"$T/in"
talk -v -n 12 --chat-template ChatML
check "a first turn computes all" stderr_has \
    'tokens of the conversation: 0 kept, [0-9]+ computed, 12 generated'
check "a second turn keeps the first" stderr_has \
    'tokens of the conversation: [1-9][0-9]+ kept, [0-9]+ computed'
want=$(tail -n 1 "$OUT")
# The number of messages in front: no prompt begins as the one before.
cat >"$T/count.jinja" <<'END'
{{ messages | length }}{% for m in messages %}
{{ m.role }}: {{ m.content }}{% endfor %}{% if add_generation_prompt %}
assistant:{% endif %}
END
printf '%s\n' "In the beginning" "And the LORD said" "/save! $T/counted" \
    "And Moses" >"$T/in"
talk -v -n 12 --chat-template "$T/count.jinja"
check "a template that changes its first token" is_success
check "next to nothing is kept of such a prompt" \
    equal "$(grep -c 'conversation: [0-3] kept' "$ERR")" 3
want=$(tail -n 1 "$OUT")
last_answer_is "it is read as a new conversation is" "/load $T/counted
And Moses" --chat-template "$T/count.jinja"
printf '%s\n' "In the beginning" "/prefill was the word" "And the LORD said" \
    "/save! $T/begun" /undo "/prefill was the word" "And the LORD said" \
    "And Moses" >"$T/in"
talk -q -n 12 --chat-template ChatML
check "/prefill begins one answer" test "$(grep -c '^was the word' "$OUT")" -eq 2
check "it begins the same answer again" \
    equal "$(sed -n 2p "$OUT")" "$(sed -n 3p "$OUT")"
want=$(tail -n 1 "$OUT")
last_answer_is "/prefill, saved and loaded" "/load $T/begun
And Moses" --chat-template ChatML
echo "{% if messages[-1].content == 'no' %}{{ raise_exception('not that') }}" \
    "{% endif %}{{ messages[-1].content }}" >"$T/refuses.jinja"
printf '%s\n' "In the" no "And the" >"$T/in"
talk -q -n 2 --chat-template "$T/refuses.jinja"
check "a message that the template refuses" exits 1
check "its words are shown" stderr_has 'the chat template: .*not that'
check "the others are answered" test "$(wc -l <"$OUT")" -eq 2

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
until(b"until you stopped it")
until(b"> ")
os.write(fd, b"\x04")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
run_any "$PYTHON" "$T/terminal.py" "$BIN" chat -q -m "$MODEL" --temp 0 \
    --ctx 16384
check "editing, Ctrl-C and history work on a terminal" is_success
e2e_end
