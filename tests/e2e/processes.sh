#!/bin/bash
# tests/e2e/processes.sh - the workers as processes: they do not outlive the
# coordinator, and their loss is named.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

# A generation in three sessions that goes on until something ends it; all of
# it is under way when there is text.
LONG=(run -m "$MODEL" -p "In the beginning" -n 100000 --ctx 65536
    --ignore-eos --temp 0 -q --recover 0 -s a=cpu,threads=1 -s b=cpu,threads=1
    -s c=cpu,threads=1)

begin()
{
	straddle_bg "${LONG[@]}" "$@"
	check "text comes as it is made" in_time has_text
	pids=($(workers))
	check "three workers" same 3 "${#pids[@]}"
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
	begin
	kill -$signal "$GROUP"
	check "SIG$signal ends it" finishes
	check "SIG$signal: exit 1" exits 1
	check "SIG$signal is named" says "^straddle: interrupted by signal"
	check "SIG$signal: no worker is left" ended
	check "SIG$signal: the text so far is there" whole_text
done
trap '' HUP			# as nohup does
begin
trap 'exit 129' HUP
kill -HUP "$GROUP"
kill -TERM "$GROUP"
check "a hangup that is ignored is no end, but SIGTERM" finishes
check "a hangup that is ignored: SIGTERM is named" \
    says "^straddle: interrupted by signal 15"
begin
kill -INT -- "-$GROUP"		# as Ctrl-C does: to all
check "Ctrl-C ends it" finishes
check "Ctrl-C: exit 1" exits 1
check "Ctrl-C is what is named, not a lost worker" \
    says "^straddle: interrupted by signal 2"
check "Ctrl-C: one line" same 1 "$(wc -l <"$ERR")"
check "Ctrl-C: no worker is left" ended
check "Ctrl-C: the text so far is there" whole_text

# During the start, too: at any moment from when it is the program that gets
# the signal, and no longer the shell's child.
is_started()
{
	[ "$(cat "/proc/$GROUP/comm")" != "$(cat /proc/$$/comm)" ]
}

for wait in 0 0.01 0.03 0.06 0.1; do
	straddle_bg "${LONG[@]}"
	in_time is_started
	sleep $wait
	kill -TERM "$GROUP"
	check "SIGTERM after $wait s ends it" finishes
	check "SIGTERM after $wait s: not done" test "$RC" -ne 0
	check "SIGTERM after $wait s: no worker is left" in_time ended
done

# A reader that does not read must not make it deaf.
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

heard()	# HOW
{
	kill -TERM "$GROUP"
	check "SIGTERM is heard all the same $1" finishes
	check "its exit is 1 $1" exits 1
	check "and no worker is left $1" ended
	"$PYTHON" -c 'import os; os.set_blocking(9, False); os.read(9, 1 << 20)'
}

mkfifo "$T/pipe"
exec 9<>"$T/pipe"
"$PYTHON" -c 'import fcntl; fcntl.fcntl(9, 1031, 4096)'	# F_SETPIPE_SZ
into_pipe "${LONG[@]}"
check "a pipe that nobody reads fills up" in_time pipe_is_full
heard "in the middle of text"
into_pipe "${LONG[@]}" -n 600 --json
check "a pipe that nobody reads fills up with JSON" in_time pipe_is_full
heard "in the middle of JSON"
# What is to be said at the end finds it full already.
all_confined() { [ "$(grep -c 'session [abc]: confined' "$ERR")" -eq 3 ]; }
printf '%4096s' x >&9
into_pipe "${LONG[@]}" --json -v
check "it generates" in_time all_confined
heard "before there is JSON"
exec 9>&-

# A start that takes long is not deaf either: the second worker comes late.
cat >"$T/slow" <<'END'
#!/bin/sh
if [ -e "$SLOW" ]; then exec sleep 1000; else : >"$SLOW"; fi
exec "$@"
END
chmod +x "$T/slow"
COMMAND="a slow start" RC=0
SLOW=$T/started STRADDLE_LAUNCH="$T/slow ${STRADDLE_LAUNCH:-}" \
    "$BIN" "${LONG[@]}" <"$INPUT" >"$OUT" 2>"$ERR" &
GROUP=$!
check "the first worker has started" in_time test -e "$T/started"
sleep 1
kill -TERM "$GROUP"
check "SIGTERM ends a slow start" finishes
check "a slow start: no worker is left" in_time ended

# Nor is measuring one, before there is a plan, whose group goes, too.
no_group() { nothing "$(find /sys/fs/cgroup -name "straddle.$1.*")"; }
: >"$T/measured"
SLOW=$T/measured STRADDLE_LAUNCH=$T/slow straddle_bg "${LONG[@]}"
one_worker() { same 1 "$(pgrep -c -g "$GROUP" sleep)"; }
check "a worker is measured" in_time one_worker
kill -TERM "$GROUP"
check "SIGTERM ends measuring" finishes
check "measuring: exit 1" exits 1
check "measuring ends with a word" says '^straddle: interrupted by signal 15'
check "measuring: no worker is left" in_time ended
check "measuring: no group is left" no_group "$GROUP"

begin
kill -KILL "$GROUP"
check "kill -9 of the coordinator" finishes
check "its workers go" in_time ended

# --- losing a worker, where none may be lost (e2e/recover.sh has the rest) ---

for i in 0 1 2; do
	begin
	kill -KILL "${pids[i]}"
	name=$(echo a b c | cut -d ' ' -f $((i + 1)))
	check "the loss of $name ends it" finishes
	check "the loss of $name: exit 1" exits 1
	check "the loss of $name is named, with the signal" \
	    says "^straddle: session $name: .*signal 9"
	check "the loss of $name: one line" same 1 "$(wc -l <"$ERR")"
	check "the loss of $name: no worker is left" ended
	check "the loss of $name: the text so far is there" whole_text
done
begin
kill -ABRT "${pids[1]}"
check "a crash ends it" finishes
check "a crash is named" says '^straddle: session b: .*signal 6'
check "a crash: no worker is left" ended

# Whoever comes first: also one that only measures, before the plan.  It is
# killed by what launches it, which no race with its own end can miss.
printf '#!/bin/sh\nkill -KILL $$\n' >"$T/stillborn"
chmod +x "$T/stillborn"
STRADDLE_LAUNCH=$T/stillborn straddle_bg "${LONG[@]}"
check "a loss at birth ends it for good" finishes
check "its loss: exit 1" exits 1
check "its loss is named" says '^straddle: session a: .*signal 9'
check "its loss: no worker is left" ended

# --- stopped, and continued ---

size() { wc -c <"$OUT"; }
grows() { [ "$(size)" -gt "$before" ]; }

all_stopped() { ! pgrep -r R,S,D -g "$GROUP" >/dev/null; }

begin
kill -STOP -- "-$GROUP"
check "all of it can be stopped" in_time all_stopped
before=$(size)
sleep 1.5
check "stopped, it says nothing" same "$before" "$(size)"
check "stopped, nobody is lost" same 3 "$(workers | wc -l)"
kill -CONT -- "-$GROUP"
check "continued, it goes on" in_time grows
kill -STOP "${pids[1]}"		# a stage alone
sleep 1.5
before=$(size)
kill -CONT "${pids[1]}"
check "so it does when one stage was stopped" in_time grows
kill -INT "$GROUP"
check "and ends" finishes
check "as if nothing had been" says '^straddle: interrupted by signal 2'

# --- what a worker is ---

begin
title_is()
{
	local title

	IFS= read -r -d '' title <"/proc/$1/cmdline"
	echo "title: $title" >>"$ERR"
	[[ $title =~ ^$2\ ?$ ]]
}
check "title of the first" \
    title_is "${pids[0]}" 'straddle: a .*layers 0-[0-9]+'
check "title of the second" \
    title_is "${pids[1]}" 'straddle: b layers [0-9]+-[0-9]+'
check "title of the last" title_is "${pids[2]}" 'straddle: c .*head'

# Streams, channel, its own /proc files, and the last one's bell: no more and no
# fewer.  The model is closed when it is loaded, the rings when they are mapped.
fds_of()
{
	local fd

	for fd in "/proc/$1/fd"/*; do
		readlink "$fd"
	done | sed -E "s|^$ERR\$|stderr|; s|^socket:.*|channel|
s|^/proc/[0-9]+/||; s|^anon_inode:\[eventfd.*|bell|" | sort | tr '\n' ' '
}
has_its_files()
{
	local bell= rollup=

	[ "$1" -lt 2 ] || bell="bell "
	[ ! -e /proc/self/smaps_rollup ] || rollup="smaps_rollup "
	same "/dev/null ${bell}channel ${rollup}status stderr stderr " \
	    "$(fds_of "${pids[$1]}")"
}

# What is not dumpable belongs to root, and shows its files to nobody else.
hides_its_files()
{
	same 0 "$(stat -c %u "/proc/$1/status")"
}
for i in 0 1 2; do
	if ls "/proc/${pids[i]}/fd" >/dev/null 2>&1; then
		check "worker $i has the files that it needs, and no other" \
		    has_its_files "$i"
	else
		check "worker $i hides its files" hides_its_files "${pids[i]}"
	fi
done
kill -TERM "$GROUP"
check "the end" finishes

# --- threads and cores ---

# bound_of PID: the cores of each thread, sorted.
bound_of()
{
	sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$1/task"/*/status |
	    sort -n | tr '\n' ' '
}

# two_bound WHAT SPEC BOUND: the threads of two sessions of that kind.
two_bound()
{
	straddle_bg run -m "$MODEL" -p "In the beginning" -n 100000 \
	    --ctx 65536 --ignore-eos --temp 0 -q -s "a=$2" -s "b=$2"
	check "$1: under way" in_time has_text
	pids=($(workers))
	check "$1: two workers" same 2 "${#pids[@]}"
	for pid in "${pids[@]}"; do
		check "$1: threads' cores" same "$3" "$(bound_of "$pid")"
	done
	kill -TERM "$GROUP"
	check "$1: the end" finishes
}

two=($(cores | head -n 2))
if [ ${#two[@]} -eq 2 ] && ! sanitized; then	# those have more threads
	list="${two[0]},${two[1]}"
	both=$list
	[ "${two[1]}" -ne $((two[0] + 1)) ] || both="${two[0]}-${two[1]}"
	two_bound "shared cores, a thread for each" "cpu,cores=$list" \
	    "${two[0]} ${two[1]} "
	two_bound "shared cores, fewer threads" \
	    "cpu,cores=$list,threads=1" "$both "
fi

e2e_end
