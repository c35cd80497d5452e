# tests/e2e/lib.sh - library of the end-to-end tests; tests/e2e/*.sh source it.
#
# Every command runs in its own process group, under a time limit, with its
# streams redirected to files of a private folder.  A process of the group that
# outlives the command is a leak.
#
#	STRADDLE_BIN	the program (default build/straddle)
#	STRADDLE_TESTS	this folder (default tests)
#	STRADDLE_SEED	seed of all random choices (default: random; printed)
#	FULL		not empty: every combination instead of a sample
#	STRADDLE_MKGGUF	program that writes test models (default: tests/tools/mkgguf
#			in the build folder)

set -m			# a process group per command, which does not ignore SIGINT
SEED=${STRADDLE_SEED:-$RANDOM}
RANDOM=$SEED
echo "STRADDLE_SEED=$SEED"
unset STRADDLE_CPU_MASK STRADDLE_SEED EDITRC
export LC_ALL=C

BIN=$(realpath "${STRADDLE_BIN:-build/straddle}")
TESTS=$(realpath "${STRADDLE_TESTS:-tests}")
FAULTY=$(dirname "$BIN")/tests/tools/faulty
MKGGUF=${STRADDLE_MKGGUF:-$(dirname "$BIN")/tests/tools/mkgguf}
MODEL=$TESTS/data/kjv-q8_0.gguf
DEMO=$TESTS/../config/demo.conf
TOPIC=$(basename "$0" .sh)
# Seconds after which a command or a condition counts as hung.  A busy machine, or
# one that pauses for half a minute, must not fail a test.
LIMIT=300
INPUT=/dev/null		# the command's stdin
PASSED=0 FAILED=0 ENDED=
RC=0 GROUP=0 COMMAND=none

T=$(mktemp -d "${TMPDIR:-/tmp}/straddle-e2e.XXXXXX")
export HOME=$T		# no user's settings
unset XDG_CACHE_HOME
OUT=$T/out ERR=$T/err
true >"$OUT" 2>"$ERR"
exec 2>"$T/shell"	# bash reports jobs that the tests kill on purpose
trap e2e_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

e2e_exit()
{
	local rc=$?

	[ "$GROUP" -eq 0 ] || kill -KILL -- "-$GROUP" || true
	[ -n "$ENDED" ] || grep -v "^\[" "$T/shell" || true
	rm -rf "$T"
	[ -z "$ENDED" ] || exit "$rc"
	echo "$TOPIC: $PASSED passed, $((FAILED + 1)) failed (stopped early)"
	exit 1
}

# The last line of every test.
e2e_end()
{
	ENDED=1
	echo "$TOPIC: $PASSED passed, $FAILED failed"
	exit $((FAILED > 0))
}

e2e_skip()
{
	ENDED=1
	echo "$TOPIC: skipped: $*"
	exit 77
}

e2e_need()
{
	local tool

	for tool; do
		command -v "$tool" >/dev/null || e2e_skip "$tool is not installed"
	done
}

[ -x "$BIN" ] || e2e_skip "$BIN is not built"
e2e_need timeout pgrep python3 cmp awk iconv
PYTHON=$(python3 -c "import sys; print(sys.executable)")	# not a wrapper

# --- running ---

# run_any COMMAND...: set RC to its exit code; its streams go to $OUT and $ERR.
run_any()
{
	COMMAND="$*" RC=0
	timeout -k 2 "$LIMIT" "$@" <"$INPUT" >"$OUT" 2>"$ERR" &
	GROUP=$!
	wait "$GROUP" || RC=$?
}

straddle()
{
	run_any "$BIN" "$@"
}

# Until restore_groups is called, the program cannot create memory groups
# (tests/tools/faulty.c).  Fails where that program is not built.
hide_groups()
{
	[ -x "$FAULTY" ] || return 1
	WITH_GROUPS=$BIN BIN=$FAULTY
	export STRADDLE_CGROUP_ROOT=/nowhere
}

restore_groups()
{
	BIN=$WITH_GROUPS
	unset STRADDLE_CGROUP_ROOT
}

# Start straddle in the background; GROUP is its pid and process group.
straddle_bg()
{
	COMMAND="$* &" RC=0
	true >"$OUT" 2>"$ERR"	# drop the last command's output
	"$BIN" "$@" <"$INPUT" >"$OUT" 2>"$ERR" &
	GROUP=$!
}

# eventually COMMAND...: repeat it until it succeeds; fail after LIMIT.
eventually()
{
	local end=$((SECONDS + LIMIT))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}

group_is_empty()
{
	! pgrep -r R,S,D,T,t -g "$GROUP" >/dev/null
}

# No process of the group is left.  Two kinds of process may end a moment later
# than the command: the leak checker of a worker that was killed while it exited,
# and the emulator of a domain (EMULATED), for which a confined worker may not
# wait.
no_process_left()
{
	group_is_empty ||
	    { { sanitized || [ -n "${EMULATED-}" ]; } && eventually group_is_empty; }
}

# Wait for straddle_bg's command to end by itself and set RC; kill it and fail
# after LIMIT.
command_ends()
{
	local hangs=0

	eventually leader_ended || hangs=1
	[ "$hangs" -eq 0 ] || kill -KILL -- "-$GROUP"
	wait "$GROUP" || RC=$?
	return "$hangs"
}

leader_ended()
{
	! pgrep -r R,S,D,T,t -g "$GROUP" | grep -qx "$GROUP"
}

# Print the pids of the coordinator's children whose command line has REGEX, or
# with -v of those whose has not, in the order in which they were started.  The
# kernel lists them in that order; pids are no order, because they wrap around.
children()
{
	local born=/proc/$GROUP/task/$GROUP/children live pid

	live=$(pgrep -r R,S,D,T,t -P "$GROUP") || true
	for pid in $(cat "$born" 2>/dev/null || echo "$live"); do
		grep -qx "$pid" <<<"$live" || continue
		! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q "$@" ||
		    echo "$pid"
	done
}

# The workers' pids in the order of the sessions; the reader's.
workers() { children -v reader; }
readers() { children reader; }

# --- checking ---

pass()
{
	PASSED=$((PASSED + 1))
}

fail()
{
	FAILED=$((FAILED + 1))
	echo "$TOPIC: FAILED: $1"
	echo "    command: $COMMAND"
	echo "    exit code: $RC"
	sed 's/^/    out: /' "$OUT" | cut -c -200 | head -n 8
	sed 's/^/    err: /' "$ERR" | cut -c -300 | head -n 12
}

# check LABEL COMMAND...: the command succeeds.
check()
{
	local label=$1

	shift
	if "$@"; then pass; else fail "$label"; fi
}

exits() { [ "$RC" -eq "$1" ]; }
stdout_has() { grep -Eqe "$1" "$OUT"; }
stderr_has() { grep -Eqe "$1" "$ERR"; }
is_empty() { [ ! -s "$1" ]; }
equal() { [ -n "$1" ] && [ "$1" = "$2" ]; }
is_blank() { [ -z "$1" ]; }
differ() { [ "$1" != "$2" ]; }

is_success()
{
	exits 0 && no_process_left
}

# is_refusal CODE PATTERN: that exit code, one line on stderr that matches, and no
# other output.  The leak checker of a worker says so when a thread ends while it
# looks at it.
is_refusal()
{
	! sanitized ||
	    sed -i '/wrote: ==[0-9]*==Unable to get registers/d' "$ERR"
	exits "$1" && is_empty "$OUT" && [ "$(wc -l <"$ERR")" -eq 1 ] &&
	    stderr_has "^straddle: " && stderr_has "$2" && no_process_left
}

# check_success LABEL ARGS...: straddle ARGS exits with 0 and leaves no process.
check_success()
{
	local label=$1

	shift
	straddle "$@"
	check "$label" is_success
}

# check_refusal LABEL CODE PATTERN ARGS...: straddle ARGS is refused (is_refusal).
check_refusal()
{
	local label=$1 code=$2 pattern=$3

	shift 3
	straddle "$@"
	check "$label" is_refusal "$code" "$pattern"
}

# --- machine and models ---

# Print the allowed cores, one per line.
cores()
{
	"$PYTHON" -c 'import os
for c in sorted(os.sched_getaffinity(0)): print(c)'
}

# sample N WORD...: print N random words ($SEED), in the order given; all of them
# if FULL is set.
sample()
{
	local n=$1

	shift
	[ -z "${FULL-}" ] || n=$#
	printf '%s\n' "$@" | awk -v n="$n" -v seed="$SEED" '
	{ word[NR] = $0 }
	END {
		srand(seed)
		for (i = 1; i <= NR; i++)
			if (rand() * (NR - i + 1) < n) {
				print word[i]
				n--
			}
	}'
}

# The program was built with a sanitizer, whose shadow memory is in no plan.
sanitized()
{
	grep -qaE '__(asan|tsan)_init' "$BIN"
}

# make_model NAME TYPE [OPTION...]: write $T/NAME.gguf in mkgguf's tiny shape, with
# rows of 256 weights for types that have blocks of 256.
make_model()
{
	local name=$1 type=$2 shape=tiny

	case $type in
	*_k | iq4_xs)	shape=tiny256 ;;
	esac
	shift 2
	"$MKGGUF" $shape "$type" "$T/$name.gguf" "$@" >/dev/null
}

# sessions N [SPEC]: print the -s options of N sessions, for unquoted use.
sessions()
{
	local i

	for ((i = 0; i < $1; i++)); do
		echo "-s ${2:-cpu}"
	done
}

# choose WORD...: CHOSEN is one of them, all if FULL is set.
choose()
{
	local words=("$@")

	CHOSEN=("${words[RANDOM % $#]}")
	[ -z "${FULL-}" ] || CHOSEN=("$@")
}

# field NAME: print this field of the JSON object in $OUT.
field()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]], end="")' "$OUT" "$1"
}

# Print the planned memory of the first session of a plan --json, in whole MiB.
planned_mib()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["sessions"][0]["planned"] >> 20)' "$OUT"
}

# has_keys COMMAND: $OUT is JSON with the stable keys of that command.
has_keys()
{
	"$PYTHON" "$TESTS/tools/json_keys.py" "$1" "$OUT" 2>>"$ERR"
}
