#!/bin/bash
# tests/e2e/messages.sh - messages of workers: no process but the coordinator has
# the user's terminal, and what the others write is named, escaped and bounded.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

RUN=(run -m "$MODEL" -p "In the beginning" --temp 0 -q -s a=cpu,threads=1
    -s b=cpu,threads=1)
WROTE='^straddle: session [ab]: its worker wrote: '

# --- who has the terminal ---

# Started through this, a worker writes the files that its launcher has to $LIST.
cat >"$T/launch" <<'END'
#!/bin/sh
printf 'launched\033[2J\n'
ls -l /proc/$$/fd >>"$LIST"
exec "$@"
END
chmod +x "$T/launch"

# without_terminal ARGS...: of `straddle ARGS`, run on a terminal that it also
# inherits as another descriptor, no other process has that terminal, open or as
# its controlling terminal, once text is printed.  Print what is wrong, and how many processes were seen.
without_terminal()
{
	"$PYTHON" - "$BIN" "$@" <<-'END'
	import fcntl, os, pty, re, subprocess, sys, termios

	def children(pid):
	    try:
	        pids = open(f'/proc/{pid}/task/{pid}/children').read().split()
	    except OSError:
	        return []
	    return pids + [p for q in pids for p in children(q)]

	def files(pid):
	    try:
	        return {int(fd): os.readlink(f'/proc/{pid}/fd/{fd}')
	                for fd in os.listdir(f'/proc/{pid}/fd')}
	    except OSError:
	        return None		# a plain user may not look

	def terminal_of(pid):
	    return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[4])

	master, slave = pty.openpty()
	spare = os.dup2(slave, 50)
	tty = os.ttyname(slave)
	p = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=slave,
	                     stderr=slave, pass_fds=[spare],
	                     start_new_session=True, preexec_fn=lambda:
	                     fcntl.ioctl(0, termios.TIOCSCTTY, 0))
	os.close(slave)
	os.close(spare)
	seen = b''
	while len(re.sub(rb'straddle: .*\n', b'', seen)) < 16:
	    try:
	        seen += os.read(master, 4096)
	    except OSError:
	        break
	if terminal_of(p.pid) == 0:
	    print('the coordinator has no controlling terminal')
	n = 0
	for pid in children(p.pid):
	    if terminal_of(pid) != 0:
	        print(f'process {pid} has a controlling terminal')
	    got = files(pid)
	    n += 1
	    if got is None:
	        continue
	    if tty in got.values():
	        print(f'process {pid} has {tty}: {got}')
	    if got.get(0) != '/dev/null' or got.get(1) != got.get(2) or \
	       not got.get(1, '').startswith('pipe:'):
	        print(f'process {pid} has other streams: {got}')
	p.terminate()
	p.wait()
	print(n, 'processes')
	END
}

LONG=(-n 100000 --ctx 65536 --ignore-eos)
COMMAND="run, on a terminal"
check "workers have no terminal" equal "3 processes" \
    "$(without_terminal "${RUN[@]}" "${LONG[@]}")"
if command -v qemu-hexagon >/dev/null &&
    [ -x "$(dirname "$BIN")/hexagon-domain" ]; then
	COMMAND="run in a domain, on a terminal"
	check "nor has the emulator of a domain" equal "3 processes" \
	    "$(without_terminal run -m "$MODEL" -p "In the beginning" -q \
	    "${LONG[@]}" -s h=hexagon,port=emulated)"
fi
if [ -z "${STRADDLE_LAUNCH-}" ]; then
	export LIST=$T/list
	COMMAND="run with a launcher, on a terminal"
	check "nor has a worker behind a launcher" equal "3 processes" \
	    "$(STRADDLE_LAUNCH=$T/launch without_terminal "${RUN[@]}" \
	    "${LONG[@]}")"
	check "nor has the launcher" eval \
	    'grep -q "2 -> pipe:" "$LIST" && ! grep -q /dev/pts "$LIST"'
	STRADDLE_LAUNCH=$T/launch straddle "${RUN[@]}" -n 2
	check "a launcher's message is named and escaped" \
	    stderr_has "${WROTE}launched\\\\x1b\[2J\$"
	check "each process is heard" equal 4 "$(grep -c launched "$ERR")"
	printf '#!/bin/sh\ncase "$*" in *@reader*) exec "$@";; esac
	    echo waiting; exec sleep 1000\n' >"$T/slow"
	chmod +x "$T/slow"
	STRADDLE_LAUNCH=$T/slow straddle_bg "${RUN[@]}"
	check "a worker is heard before its handshake" \
	    eventually stderr_has "${WROTE}waiting\$"
	kill -TERM "$GROUP"
	check "SIGTERM ends the run" command_ends
fi

# --- hostile workers ---

[ -x "$FAULTY" ] || e2e_end
check_success "a run without a fault" "${RUN[@]}" -n 64
text=$(cat "$OUT")
BIN=$FAULTY
export STRADDLE_FAULT

is_plain() { ! LC_ALL=C grep -q '[^[:print:]]' "$ERR"; }
# A burst and the last words of both sessions, 10 lines a second of each, and notes of
# what is left out.
most=240
! sanitized || most=9000

STRADDLE_FAULT=worker:flood:1
begin=$SECONDS
check_success "workers that write too much" "${RUN[@]}" -n 64
most=$((most + 25 * (SECONDS - begin)))
check "a flood does not change the text" equal "$text" "$(cat "$OUT")"
check "a flood is named and escaped" \
    stderr_has "${WROTE}\\\\x1b\]0;title\\\\x07\\\\x1b\[2J.u009b1mflood\$"
check "of a flood nothing is obeyed" is_plain
check "a flood is bounded" test "$(wc -l <"$ERR")" -lt $most
sanitized || check "what is left out is said" stderr_has \
    'session a: its worker wrote too much: at least [0-9]+ lines, of [0-9]+ bytes, left out$'
straddle_bg "${RUN[@]}" "${LONG[@]}"
check "messages are shown while the workers run" eventually stderr_has "$WROTE"
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends
STRADDLE_FAULT=worker:last-words:3
straddle "${RUN[@]}" -n 8 --recover 1
check "a worker that aborts again ends the run" exits 1
check "its last words are shown before its loss" equal \
    "cause:no end of line:signal 6" "$(sed -n "s/${WROTE#^}the cause.*/cause/p
s/${WROTE#^}//p; s/.*session [ab]: its worker was killed by \(signal 6\).*/\1/p" \
    "$ERR" | head -n 3 | paste -s -d :)"
check "last words are escaped" is_plain

e2e_end
