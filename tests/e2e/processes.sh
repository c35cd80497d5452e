#!/bin/bash
# tests/e2e/processes.sh - workers as processes: they never outlive the
# coordinator, and their loss is reported by name.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# A generation in three sessions that runs until something ends it; all stages run
# once there is text.
LONG=(run -m "$MODEL" -p "In the beginning" -n 100000 --ctx 65536
    --ignore-eos --temp 0 -q --recover 0 -s a=cpu,threads=1 -s b=cpu,threads=1
    -s c=cpu,threads=1)

start_generation()
{
	straddle_bg "${LONG[@]}" "$@"
	check "text is printed while it is generated" eventually has_text
	pids=($(workers))
	check "there are three workers" equal 3 "${#pids[@]}"
}

has_text()
{
	[ "$(wc -c <"$OUT")" -gt 8 ]
}

whole_text()
{
	has_text && [ -z "$(tail -c 1 "$OUT")" ] &&
	    iconv -f UTF-8 -t UTF-8 "$OUT" >/dev/null
}

# --- signals to the coordinator ---

for signal in INT TERM HUP; do
	start_generation
	kill -$signal "$GROUP"
	check "SIG$signal ends the run" command_ends
	check "SIG$signal: exit 1" exits 1
	check "SIG$signal: the error names it" \
	    stderr_has "^straddle: interrupted by signal"
	check "SIG$signal: no process is left" no_process_left
	check "SIG$signal: the text so far is printed" whole_text
done
trap '' HUP			# as nohup does
start_generation
trap 'exit 129' HUP
kill -HUP "$GROUP"
kill -TERM "$GROUP"
check "with SIGHUP ignored, SIGTERM ends the run" command_ends
check "with SIGHUP ignored, the error names SIGTERM" \
    stderr_has "^straddle: interrupted by signal 15"
start_generation
kill -INT -- "-$GROUP"		# to the whole group, as Ctrl-C does
check "Ctrl-C ends the run" command_ends
check "Ctrl-C: exit 1" exits 1
check "Ctrl-C: the error names the signal, not a lost worker" \
    stderr_has "^straddle: interrupted by signal 2"
check "Ctrl-C: one line" equal 1 "$(wc -l <"$ERR")"
check "Ctrl-C: no process is left" no_process_left
check "Ctrl-C: the text so far is printed" whole_text

# Signals that end a program at once: it cleans up, then dies of the signal.
no_group() { is_blank "$(find /sys/fs/cgroup -name "straddle.$1.*")"; }
ulimit -c 0
faults="SEGV ABRT"
! sanitized || faults=
for signal in QUIT $faults $(sample 1 USR1 USR2 ALRM PROF VTALRM SYS XCPU IO); do
	start_generation
	kill -$signal "$GROUP"
	check "SIG$signal ends the run" command_ends
	check "SIG$signal: the run dies of it" \
	    exits $((128 + $(kill -l $signal)))
	check "SIG$signal: no process is left" no_process_left
	check "SIG$signal: no memory group is left" no_group "$GROUP"
done

# Signals during the start.  Wait for exec, or the shell's child gets the signal.
is_started()
{
	[ "$(cat "/proc/$GROUP/comm")" != "$(cat /proc/$$/comm)" ]
}

for wait in $(sample 2 0 0.01 0.03 0.06 0.1); do
	straddle_bg "${LONG[@]}"
	eventually is_started
	sleep $wait
	kill -TERM "$GROUP"
	check "SIGTERM after $wait s ends the run" command_ends
	check "SIGTERM after $wait s: the exit code is not 0" test "$RC" -ne 0
	check "SIGTERM after $wait s: no process is left" \
	    eventually no_process_left
done

# Signals must be handled while stdout is blocked on a full pipe.
pipe_is_full()
{
	"$PYTHON" -c 'import array, fcntl, sys, termios, time
def held():
    n = array.array("i", [0])
    fcntl.ioctl(9, termios.FIONREAD, n)
    return n[0]
before = held()
time.sleep(0.3)
sys.exit(before == 0 or held() != before)' 9<&9
}

into_pipe()	# ARGS...
{
	COMMAND="$* into a pipe that nobody reads" RC=0
	: >"$ERR"
	"$BIN" "$@" <"$INPUT" >"$T/pipe" 2>"$ERR" &
	GROUP=$!
}

check_sigterm()	# LABEL
{
	kill -TERM "$GROUP"
	check "SIGTERM $1 ends the run" command_ends
	check "SIGTERM $1: exit 1" exits 1
	check "SIGTERM $1: no process is left" no_process_left
	"$PYTHON" -c 'import os; os.set_blocking(9, False); os.read(9, 1 << 20)'
}

mkfifo "$T/pipe"
exec 9<>"$T/pipe"
"$PYTHON" -c 'import fcntl; fcntl.fcntl(9, 1031, 4096)'	# F_SETPIPE_SZ
into_pipe "${LONG[@]}"
check "text fills a pipe that nobody reads" eventually pipe_is_full
check_sigterm "with a full pipe of text"
into_pipe "${LONG[@]}" -n 600 --json
check "JSON fills a pipe that nobody reads" eventually pipe_is_full
check_sigterm "with a full pipe of JSON"
# The pipe is full before the JSON at the end is printed.
all_confined() { [ "$(grep -c 'session [abc]: confined' "$ERR")" -eq 3 ]; }
printf '%4096s' x >&9
into_pipe "${LONG[@]}" --json -v
check "all workers are confined" eventually all_confined
check_sigterm "with a pipe filled before the JSON"
exec 9>&-

# Signals must be handled during a slow start, when the second worker does not come.
cat >"$T/slow" <<'END'
#!/bin/sh
case "$*" in *@reader*) exec "$@" ;; esac
if [ -e "$SLOW" ]; then exec sleep 1000; else : >"$SLOW"; fi
exec "$@"
END
chmod +x "$T/slow"
COMMAND="a run whose second worker does not start" RC=0
SLOW=$T/started STRADDLE_LAUNCH="$T/slow ${STRADDLE_LAUNCH:-}" \
    "$BIN" "${LONG[@]}" <"$INPUT" >"$OUT" 2>"$ERR" &
GROUP=$!
check "a slow start: the first worker has started" \
    eventually test -e "$T/started"
sleep 1
kill -TERM "$GROUP"
check "a slow start: SIGTERM ends the run" command_ends
check "a slow start: no process is left" eventually no_process_left

# The same while a worker is measured, before there is a plan.
: >"$T/measured"
SLOW=$T/measured STRADDLE_LAUNCH=$T/slow straddle_bg "${LONG[@]}"
one_worker() { equal 1 "$(pgrep -c -g "$GROUP" sleep)"; }
check "measuring: the measured worker has started" eventually one_worker
kill -TERM "$GROUP"
check "measuring: SIGTERM ends the run" command_ends
check "measuring: exit 1" exits 1
check "measuring: the error names the signal" \
    stderr_has '^straddle: interrupted by signal 15'
check "measuring: no process is left" eventually no_process_left
check "measuring: no memory group is left" no_group "$GROUP"
SLOW=$T/measured STRADDLE_LAUNCH=$T/slow straddle_bg "${LONG[@]}"
check "measuring, SIGQUIT: the measured worker has started" eventually one_worker
kill -QUIT "$GROUP"
check "measuring, SIGQUIT ends the run" command_ends
check "measuring, SIGQUIT: the run dies of it" exits 131
check "measuring, SIGQUIT: no memory group is left" no_group "$GROUP"

start_generation
kill -KILL "$GROUP"
check "kill -9 of the coordinator ends the run" command_ends
check "kill -9 of the coordinator: its workers exit" eventually no_process_left

# --- losing a worker under --recover 0 (e2e/recover.sh tests recovery) ---

for i in $(sample 1 0 1 2); do
	start_generation
	kill -KILL "${pids[i]}"
	name=$(echo a b c | cut -d ' ' -f $((i + 1)))
	check "the loss of $name ends the run" command_ends
	check "the loss of $name: exit 1" exits 1
	check "the loss of $name: the error names it and the signal" \
	    stderr_has "^straddle: session $name: .*signal 9"
	check "the loss of $name: one line" equal 1 "$(wc -l <"$ERR")"
	check "the loss of $name: no process is left" no_process_left
	check "the loss of $name: the text so far is printed" whole_text
done
start_generation
kill -ABRT "${pids[1]}"
check "SIGABRT of a worker ends the run" command_ends
check "SIGABRT of a worker: the error names it and the signal" \
    stderr_has '^straddle: session b: .*signal 6'
check "SIGABRT of a worker: no process is left" no_process_left

# The first worker dies at its start, even before the plan when it is measured.
# The launcher kills itself, so no race with the worker's own exit is possible.
printf '#!/bin/sh\ncase "$*" in *@worker*) kill -KILL $$;; esac\nexec "$@"\n' \
    >"$T/stillborn"
chmod +x "$T/stillborn"
STRADDLE_LAUNCH=$T/stillborn straddle_bg "${LONG[@]}"
check "a worker that dies at its start ends the run" command_ends
check "a worker that dies at its start: exit 1" exits 1
check "a worker that dies at its start: the error names it" \
    stderr_has '^straddle: session a: .*signal 9'
check "a worker that dies at its start: no process is left" no_process_left

# --- stopped, and continued ---

size() { wc -c <"$OUT"; }
grows() { [ "$(size)" -gt "$before" ]; }

all_stopped() { ! pgrep -r R,S,D -g "$GROUP" >/dev/null; }

start_generation
kill -STOP -- "-$GROUP"
check "all processes can be stopped" eventually all_stopped
before=$(size)
sleep 1.5
check "a stopped run prints nothing" equal "$before" "$(size)"
check "a stopped run loses no worker" equal 3 "$(workers | wc -l)"
kill -CONT -- "-$GROUP"
check "a continued run prints more text" eventually grows
kill -STOP "${pids[1]}"		# one stage alone
sleep 1.5
before=$(size)
kill -CONT "${pids[1]}"
check "a run with one stage stopped and continued goes on" eventually grows
kill -INT "$GROUP"
check "a run that was stopped ends on SIGINT" command_ends
check "a run that was stopped: the error names SIGINT" \
    stderr_has '^straddle: interrupted by signal 2'

# --- process titles and file descriptors ---

start_generation
title_is()
{
	local title

	IFS= read -r -d '' title <"/proc/$1/cmdline"
	echo "title: $title" >>"$ERR"
	[[ $title =~ ^$2\ ?$ ]]
}
check "the first worker's title has its layers" \
    title_is "${pids[0]}" 'straddle: a .*layers 0-[0-9]+'
check "the second worker's title has its layers" \
    title_is "${pids[1]}" 'straddle: b layers [0-9]+-[0-9]+'
check "the last worker's title names the head" \
    title_is "${pids[2]}" 'straddle: c .*head'

# A worker keeps its streams (the pipe of its messages), the channel, its own /proc files and, in the last
# stage, the bell.  It closes the model after the load and the rings' descriptors
# once they are mapped.
fds_of()
{
	local fd

	for fd in "/proc/$1/fd"/*; do
		readlink "$fd"
	done | sed -E "s|^pipe:.*|messages|; s|^socket:.*|channel|
s|^/proc/[0-9]+/||; s|^anon_inode:\[eventfd.*|bell|" | sort | tr '\n' ' '
}
has_its_files()
{
	local bell= rollup=

	[ "$1" -lt 2 ] || bell="bell "
	[ ! -e /proc/self/smaps_rollup ] || rollup="smaps_rollup "
	equal "/dev/null ${bell}channel messages messages ${rollup}status " \
	    "$(fds_of "${pids[$1]}")"
}

# /proc of a process that is not dumpable belongs to root and hides its files.
hides_its_files()
{
	equal 0 "$(stat -c %u "/proc/$1/status")"
}
for i in 0 1 2; do
	if ls "/proc/${pids[i]}/fd" >/dev/null 2>&1; then
		check "worker $i has exactly the descriptors that it needs" \
		    has_its_files "$i"
	else
		check "worker $i is not dumpable" hides_its_files "${pids[i]}"
	fi
done
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends

# --- threads and cores ---

# bound_of PID: print the allowed cores of each thread, sorted.
bound_of()
{
	sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/task"/*/status |
	    sort -n | tr '\n' ' '
}

# check_bound LABEL SPEC CORES: the threads of two sessions of SPEC may run on CORES.
check_bound()
{
	straddle_bg run -m "$MODEL" -p "In the beginning" -n 100000 \
	    --ctx 65536 --ignore-eos --temp 0 -q -s "a=$2" -s "b=$2"
	check "$1: text is printed while it is generated" eventually has_text
	pids=($(workers))
	check "$1: there are two workers" equal 2 "${#pids[@]}"
	for pid in "${pids[@]}"; do
		check "$1: each thread is bound to its cores" \
		    equal "$3" "$(bound_of "$pid")"
	done
	kill -TERM "$GROUP"
	check "$1: SIGTERM ends the run" command_ends
}

two=($(cores | head -n 2))
if [ ${#two[@]} -eq 2 ] && ! sanitized; then	# sanitizers add threads
	list="${two[0]},${two[1]}"
	both=$list
	[ "${two[1]}" -ne $((two[0] + 1)) ] || both="${two[0]}-${two[1]}"
	check_bound "shared cores, a thread per core" "cpu,cores=$list" \
	    "${two[0]} ${two[1]} "
	check_bound "shared cores, fewer threads than cores" \
	    "cpu,cores=$list,threads=1" "$both "
fi

e2e_end
