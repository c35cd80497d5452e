#!/bin/bash
# tests/e2e/reader_attack.sh - attacker's code in the reader: it can spoil its
# model's text, and nothing else.  tests/support/attack.c has what it tries.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

[ -x "$FAULTY" ] || e2e_skip "$FAULTY is not built"
! sanitized || e2e_skip "a sanitizer needs calls and memory that a reader has not"
[ "${STRADDLE_SLOW:-0}" = 0 ] || e2e_skip "emulation has no filter of calls"

cp "$MODEL" "$T/model.gguf"
TOKENIZE=(tokenize -m "$T/model.gguf" -p "In the beginning")
straddle "${TOKENIZE[@]}"
IDS=$(cat "$OUT")
check "the model has token ids" is_success
straddle run -m "$MODEL" -p a -n 1 -s a=cpu -v
grep -q "session a: confined: no cap" "$ERR" ||
    e2e_skip "confinement is not complete here"
check "the reader is confined as workers are" \
    stderr_has "the reader: confined: no cap"
BIN=$FAULTY

# attack NAME:N ARGS...: straddle ARGS with that attack in every reader.
attack()
{
	export STRADDLE_FAULT=reader:$1
	shift
	straddle "$@"
	COMMAND="STRADDLE_FAULT=$STRADDLE_FAULT $COMMAND"
	unset STRADDLE_FAULT
}

# The attack changes nothing: the ids are right, and no process is left.
is_unharmed() { is_success && equal "$IDS" "$(cat "$OUT")"; }
# It ends in an error of one line.
is_ended() { is_refusal 1 "$1"; }

# --- calls ---

# denied NAME CALL: before the model's directory is sent, and in a text.
denied()
{
	attack "$1:3" "${TOKENIZE[@]}"
	check "$1 is denied in the header" is_ended \
	    "the reader called $2 \(number [0-9]+\), which is forbidden to it"
	attack "$1:5" "${TOKENIZE[@]}"
	check "$1 is denied in a text" is_ended \
	    "the reader called $2 \(number [0-9]+\), which is forbidden after"
}

for name in openat openat-fd openat-tty openat2 open_by_handle_at unlinkat \
    pwrite64 ftruncate fallocate fchmod \
    socket socketpair connect sendto sendmmsg setsockopt pipe2 dup \
    pidfd_getfd clone clone-thread clone3 execve execveat \
    kill tkill tgkill rt_sigqueueinfo pidfd_open pidfd_send_signal \
    ptrace process_vm_readv process_vm_writev \
    ioctl ioctl-1 ioctl-2 fcntl fcntl-seal prctl prlimit64 setpriority \
    mmap mprotect pkey_mprotect memfd_create shmget \
    io_uring_setup userfaultfd bpf perf_event_open mount unshare setns \
    keyctl personality setuid capset setsid setpgid seccomp getrandom; do
	call=${name%%-*}
	denied "$name" "$call"
done
attack landlock:3 "${TOKENIZE[@]}"
check "a rule set of its own is denied" is_ended "landlock_restrict_self"

# The handler of denied calls is the attacker's to replace; the calls stay denied.
attack own-handler:3 "${TOKENIZE[@]}"
check "a denied call is not made, whoever handles the signal" \
    stderr_has "attack: openat: denied"
check "and the reader goes on" is_unharmed

# The calls that an attacker finds are those of the list, whatever their arguments.
listed()
{
	sed -n "/$1permissions\[\] = {/,/^};/s/.*SCMP_SYS(\([a-z0-9_]*\)).*/\1/p" \
	    "$TESTS/../worker/confine/calls.c"
}
found() { sed -n 's/.*attack: not denied: //p' "$ERR" | tr ' ' '\n' | sort -u; }
only_in_list()
{
	[ -n "$(found)" ] &&
	    is_blank "$(comm -23 <(found) <(sort -u <<<"$1"))"
}
attack all-calls:5 "${TOKENIZE[@]}"
check "in a text only listed calls are not denied" only_in_list \
    "$(listed "struct permission ")"
check "calls do no harm" is_unharmed
attack all-calls:3 "${TOKENIZE[@]}"
check "in the header only listed calls are not denied" only_in_list \
    "$(listed "struct permission "; listed load_)"

if [ "$(uname -m)" = x86_64 ]; then
	for name in x32 i386; do
		attack $name:3 "${TOKENIZE[@]}" --recover 0
		check "a call of another kind ends the reader: $name" \
		    is_ended "killed by signal 31"
	done
fi

for n in 3 5; do
	attack descriptors:$n "${TOKENIZE[@]}"
	check "no file that it holds can be written ($n)" is_unharmed
	check "nothing was written ($n)" eval "! stderr_has 'attack: (wrote|mapped)'"
done
check "it has its output, its channel and the model" stderr_has \
    "attack: descriptors: 0 1 2 3 [0-9]+$"
check "the model's file is the same" cmp -s "$MODEL" "$T/model.gguf"

# --- memory ---

# It got N bytes, of a cap of $CAP.
within_cap()
{
	local got=$(sed -n "s/.*attack: $1: \([0-9]*\) bytes.*/\1/p" "$ERR")

	[ -n "$got" ] && [ "$got" -le "$CAP" ] && ! stderr_has "no end"
}
straddle tokenize -m "$MODEL" -p a -v
CAP=$(sed -n 's/.*the reader: pid .*, cap \([0-9]*\) MiB, held by RLIMIT.*/\1/p' \
    "$ERR")
check "the cap is reported, and who holds it" test -n "$CAP"
CAP=$((${CAP:-0} << 20))
for name in mem-private mem-shared mem-heap mem-tables mem-files; do
	for n in 3 5; do
		attack $name:$n "${TOKENIZE[@]}"
		check "$name: the kernel holds the cap ($n)" within_cap $name
		# What is left of the cap may be too little for an answer.
		check "$name: the reader goes on, or the cap is named ($n)" \
		    eval 'is_unharmed || { exits 1 && is_empty "$OUT" &&
		    no_process_left && stderr_has "reader-cap sets another"; }'
	done
done
for n in 3 5; do
	attack mem-packets:$n "${TOKENIZE[@]}"
	# It may be ended before it can say how many it sent.
	check "packets with descriptors end it ($n)" eval 'exits 1 &&
	    is_empty "$OUT" && no_process_left &&
	    stderr_has "the reader sent .*; it was ended"'
done

# --- lies ---

lie()	# NAME PATTERN [N]
{
	attack "$1:${3:-1}" "${TOKENIZE[@]}"
	check "the lie is noticed: $1" is_ended "$2"
}
IN_PLACE="message [0-9]+ of [0-9]+ bytes in place of [0-9]+; it was ended"
lie hello-version "sent version 77, not 1"
for name in hello-short parts-long dir-short dir-none pieces-short \
    type-unknown type-ids type-open type-refused; do
	lie $name "$IN_PLACE"
done
lie type-unknown "$IN_PLACE" 5
lie type-note "sent a note that it must not"
lie type-error "sent an error of [0-9]+ bytes"
lie fds "sent descriptors" 1
lie fds "sent descriptors" 6
lie parts-0 "a count of 0 parts"
lie parts-many "a count of 4294967295 parts"
lie dir-bytes-0 "image: the reader says 0 bytes"
lie dir-bytes-8 "image: 8 bytes are no directory"
lie dir-bytes-huge "image: the reader says 18446744073709551615 bytes"
lie hp-arch "arch is 9999: no architecture"
lie hp-heads "n_head_kv is 0: must be"
lie hp-vocab "n_vocab is 4294967295: must be"
lie hp-other-vocab "2048 tokens of a model with 100"
lie hp-nan "rope_base is nan: must be finite"
lie pieces-bytes-0 "image: the reader says 0 bytes"
lie pieces-bytes-8 "wrong answer: the reader's image: "
lie pieces-huge "image: the reader says 18446744073709551615 bytes"
lie ids-high "token id 4294967295 of a vocabulary of 2048; it was ended"
lie ids-odd "a list of ids of 3 bytes"
lie ids-none "a list of ids of 0 bytes"
lie ids-many "16384 ids of a text that has at most"
lie ids-more "[0-9]+ ids, and says 18446744073709551615"
lie encoded-short "the end of a text, 8 bytes"
lie error-text "the reader gave up: .x1b\]0;pwned"
attack parts-2:1 "${TOKENIZE[@]}"
check "a part that is none is not opened" is_refusal 4 \
    "its name must end in -00001-of-00002.gguf"

# What the terminal would obey is escaped, in one line, and no lie passes for the
# end by a signal.
has_no_escapes() { ! grep -q $'[\033\007\r]\|\302\233\|\342\200\256' "$ERR"; }
for name in refused-0 refused-7 refused-min refused-signal refused-lost; do
	for n in 2 3 4 5; do
		attack $name:$n "${TOKENIZE[@]}"
		check "$name: one line of error, the reader's ($n)" is_ended \
		    "^straddle: the reader: .x1b\]0;pwned"
		check "$name: escaped ($n)" has_no_escapes
	done
done
attack dir-error:1 inspect -m "$MODEL"
check "an error of the model is escaped" has_no_escapes
for name in note-text flood-notes; do
	attack $name:5 "${TOKENIZE[@]}"
	check "$name is escaped, limited, and said to be the reader's" eval \
	    'has_no_escapes && [ "$(wc -l <"$ERR")" -le 70 ] &&
	    ! grep -v "^straddle: the reader" "$ERR"'
done

# --- the image ---

for n in 1 2; do
	attack image-kept:$n "${TOKENIZE[@]}"
	check "an image that is still mapped for writing is refused ($n)" \
	    is_ended "sealed: Device or resource busy"
	# One or the other is first.
	attack image-late-map:$n "${TOKENIZE[@]}"
	check "a map is refused, or the image ($n)" eval 'no_process_left &&
	    { { exits 1 && is_empty "$OUT" &&
	    stderr_has "the reader sent a wrong answer: "; } ||
	    { exits 0 && stderr_has "Operation not permitted, after none"; }; }'
	attack image-late-write:$n "${TOKENIZE[@]}"
	# An image that it spoiled in time may end it before it says so.
	check "nothing is written after the seal ($n)" eval 'no_process_left &&
	    { { exits 1 && is_empty "$OUT" &&
	    stderr_has "the reader sent a wrong answer: "; } ||
	    { is_unharmed && stderr_has "Operation not permitted"; }; }'
	for name in random zero; do
		attack image-$name:$n "${TOKENIZE[@]}"
		check "an image of nonsense is refused: $name $n" is_ended \
		    "wrong answer: the reader's image: "
	done
done

# --- no answer ---

export STRADDLE_READER_WAIT_S=2
for n in 1 2 3 4 5 6; do
	for name in hang spin stop; do
		[ -n "${FULL-}" ] || [ $((n % 3)) = $((${#name} % 3)) ] || continue
		attack $name:$n "${TOKENIZE[@]}"
		check "$name before message $n ends it" is_ended \
		    "the reader did not answer in"
	done
	for end in "exit-0 exited with code 0" "exit-1 exited with code 1" \
	    "die-kill killed by signal 9" "die-abort killed by signal 6" \
	    "close closed its channel"; do
		attack ${end%% *}:$n "${TOKENIZE[@]}" --recover 0
		check "${end%% *} before message $n" is_ended "${end#* }"
	done
	attack close-output:$n "${TOKENIZE[@]}"
	check "without output it goes on ($n)" is_unharmed
done
unset STRADDLE_READER_WAIT_S
export STRADDLE_READER_CPU_S=1
for n in 1 3 5; do
	attack spin:$n "${TOKENIZE[@]}"
	check "spinning before message $n uses up its time" is_ended \
	    "the reader used more CPU time than is allowed"
done
unset STRADDLE_READER_CPU_S
export STRADDLE_READER_WAIT_S=2
attack flood-answers:3 "${TOKENIZE[@]}"
check "answers that nobody asked for end it" is_ended "$IN_PLACE"
attack drip-answers:5 tokenize -m "$T/model.gguf" \
    -p "In the beginning God created the heaven and the earth"
check "an answer that comes in drops ends it" is_ended \
    "the reader did not answer in"
unset STRADDLE_READER_WAIT_S
attack flood-output:5 "${TOKENIZE[@]}"
check "a flood of output is cut" eval 'exits 0 && has_no_escapes &&
    [ "$(wc -l <"$ERR")" -le 200 ]'

# --- the others go on ---

export STRADDLE_READER_WAIT_S=2

# once NAME:N ARGS...: the attack in one reader only.
once()
{
	printf '\0\0\0\0\0\0\0\0' >"$T/faults"
	export STRADDLE_FAULT_FILE=$T/faults
	attack "$@"
	unset STRADDLE_FAULT_FILE
}
was_hit() { [ "$(od -An -tu4 -N4 "$T/faults" | tr -d ' ')" -gt 0 ]; }

ONE=(-m "$MODEL" -n 6 --temp 0 -s cpu,threads=1 -q)
printf 'In the\nThe Lord\n' >"$T/two"
printf 'In the\nAnd God\nThe Lord\n' >"$T/three"
INPUT=$T/two straddle chat "${ONE[@]}"
two=$(cat "$OUT")
INPUT=$T/three straddle chat "${ONE[@]}"
three=$(cat "$OUT")
# Messages 5 and 6 answer the first text, 7 and 8 the second.
for name in ids-high ids-odd refused-signal refused-model refused-usage fds \
    type-unknown hang spin stop exit-0 close openat; do
	INPUT=$T/three once $name:7 chat "${ONE[@]}"
	check "chat: $name fails one message" eval 'was_hit && exits 1 &&
	    stderr_has "lines? had no answer"'
	case $name in
	refused-*)	check "chat: nor is its late answer taken for the next" \
			    stderr_has "sent an answer to text 2 in place of 3"
			continue ;;
	esac
	check "chat: the answers are those without that message: $name" \
	    equal "$two" "$(cat "$OUT")"
done
for name in die-kill die-segv; do
	INPUT=$T/three once $name:7 chat "${ONE[@]}"
	check "chat: another reader takes over after $name" eval \
	    'was_hit && exits 0 && equal "$three" "$(cat "$OUT")"'
done

straddle run --prompts "$T/three" "${ONE[@]}"
sort "$OUT" >"$T/all"
nerrors() { grep -c '"error":' "$OUT" || true; }
for name in ids-high refused-signal refused-model fds hang exit-0; do
	# The texts' lengths are asked for first.
	once $name:9 run --prompts "$T/three" "${ONE[@]}"
	check "--prompts: $name is the error of its line" eval \
	    'was_hit && exits 1 && [ "$(wc -l <"$OUT")" = 3 ] &&
	    grep -q "\"index\":1,.*\"error\":" "$OUT"'
	case $name in
	refused-*)	continue ;;
	esac
	check "--prompts: it is the only error: $name" equal 1 "$(nerrors)"
	check "--prompts: the other lines are the same: $name" is_blank \
	    "$(grep -v '"error":' "$OUT" | sort | comm -13 "$T/all" -)"
done

e2e_end
