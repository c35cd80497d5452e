# tests/e2e/lib.sh - what the end-to-end tests share; sourced by tests/e2e/*.sh.
#
# Every command is a process group of its own, under a time limit, with its
# streams in files of a private folder.  What is left of the group when the
# command has ended is a leak.
#
#	STRADDLE_BIN	the program (default build/straddle)
#	STRADDLE_TESTS	this folder (default tests)
#	STRADDLE_SEED	of what is drawn at random (default: drawn, printed)
#	FULL		not empty: every combination instead of a sample
#	STRADDLE_MKGGUF	the maker of models (default tests/tools/mkgguf beside BIN)

set -m			# groups; and SIGINT is not ignored in them
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
# Seconds after which a command, or what is waited for, is taken to hang.  How
# long things take is the machine's business: one that is busy, or has stopped
# for half a minute, fails nothing.
LIMIT=300
INPUT=/dev/null		# the command's stdin
PASSED=0 FAILED=0 ENDED=
RC=0 GROUP=0 COMMAND=none

T=$(mktemp -d "${TMPDIR:-/tmp}/straddle-e2e.XXXXXX")
export HOME=$T		# where nobody's settings are
OUT=$T/out ERR=$T/err
true >"$OUT" 2>"$ERR"
exec 2>"$T/shell"	# what bash says of jobs that were killed on purpose
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
		command -v "$tool" >/dev/null || e2e_skip "there is no $tool"
	done
}

[ -x "$BIN" ] || e2e_skip "$BIN is not built"
e2e_need timeout pgrep python3 cmp awk iconv
PYTHON=$(python3 -c "import sys; print(sys.executable)")	# not a wrapper

# --- running ---

# Any command: its exit code in RC, its streams in $OUT and $ERR.
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

# From here to with_groups: no memory group can be created (tests/tools/faulty.c).
# Fails where that program is not built.
without_groups()
{
	[ -x "$FAULTY" ] || return 1
	WITH_GROUPS=$BIN BIN=$FAULTY
	export STRADDLE_CGROUP_ROOT=/nowhere
}

with_groups()
{
	BIN=$WITH_GROUPS
	unset STRADDLE_CGROUP_ROOT
}

# The same in the background: its pid, and its group, is GROUP.
straddle_bg()
{
	COMMAND="$* &" RC=0
	true >"$OUT" 2>"$ERR"	# so that what is there is its own
	"$BIN" "$@" <"$INPUT" >"$OUT" 2>"$ERR" &
	GROUP=$!
}

# Wait until the command succeeds; it must do so before LIMIT.
in_time()
{
	local end=$((SECONDS + LIMIT))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}

nobody_left()
{
	! pgrep -r R,S,D,T,t -g "$GROUP" >/dev/null
}

# The leak checker of a worker that is killed in its last moments is a process
# of its own, and goes a moment later; so does the emulator of a domain, whose
# worker may not wait for it once it is confined (EMULATED).
ended()
{
	nobody_left ||
	    { { sanitized || [ -n "${EMULATED-}" ]; } && in_time nobody_left; }
}

# The end of straddle_bg's command, by itself.
finishes()
{
	local hangs=0

	in_time leader_ended || hangs=1
	[ "$hangs" -eq 0 ] || kill -KILL -- "-$GROUP"
	wait "$GROUP" || RC=$?
	return "$hangs"
}

leader_ended()
{
	! pgrep -r R,S,D,T,t -g "$GROUP" | grep -qx "$GROUP"
}

# Pids of the workers, in the order of the sessions: by birth and not by number,
# which begins anew when the largest was given out.
workers()
{
	local born=/proc/$GROUP/task/$GROUP/children live pid

	live=$(pgrep -r R,S,D,T,t -P "$GROUP") || true
	for pid in $(cat "$born" 2>/dev/null || echo "$live"); do
		grep -x "$pid" <<<"$live" || true
	done
}

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

# check WHAT COMMAND...: the command succeeds.
check()
{
	local what=$1

	shift
	if "$@"; then pass; else fail "$what"; fi
}

exits() { [ "$RC" -eq "$1" ]; }
prints() { grep -Eqe "$1" "$OUT"; }
says() { grep -Eqe "$1" "$ERR"; }
is_empty() { [ ! -s "$1" ]; }
same() { [ -n "$1" ] && [ "$1" = "$2" ]; }
nothing() { [ -z "$1" ]; }
differ() { [ "$1" != "$2" ]; }

is_success()
{
	exits 0 && ended
}

# Of a refusal: the code, one line that says why, and nothing else.
is_refusal()
{
	exits "$1" && is_empty "$OUT" && [ "$(wc -l <"$ERR")" -eq 1 ] &&
	    says "^straddle: " && says "$2" && ended
}

# works WHAT ARGS...: exit 0, no process left.
works()
{
	local what=$1

	shift
	straddle "$@"
	check "$what" is_success
}

# refuses WHAT CODE PATTERN ARGS...
refuses()
{
	local what=$1 code=$2 pattern=$3

	shift 3
	straddle "$@"
	check "$what" is_refusal "$code" "$pattern"
}

# --- what this machine has ---

# The allowed cores, one a line.
cores()
{
	"$PYTHON" -c 'import os
for c in sorted(os.sched_getaffinity(0)): print(c)'
}

# sample N WORD...: N of the words, drawn with $SEED, in the order given; all of
# them under FULL.
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

# A sanitizer's shadow memory is in no plan.
sanitized()
{
	grep -qaE '__(asan|tsan)_init' "$BIN"
}

# make_model NAME TYPE [OPTION...]: $T/NAME.gguf of mkgguf's tiny shape, with
# rows of 256 for types with blocks of 256.
make_model()
{
	local name=$1 type=$2 shape=tiny

	case $type in
	*_k | iq4_xs)	shape=tiny256 ;;
	esac
	shift 2
	"$MKGGUF" $shape "$type" "$T/$name.gguf" "$@" >/dev/null
}

# sessions N [SPEC]: the -s options of N sessions, for unquoted use.
sessions()
{
	local i

	for ((i = 0; i < $1; i++)); do
		echo "-s ${2:-cpu}"
	done
}

# field NAME: of the JSON object in $OUT, as text.
field()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))[sys.argv[2]], end="")' "$OUT" "$1"
}

# has_keys KIND: $OUT is JSON with the stable keys of that command.
has_keys()
{
	"$PYTHON" "$TESTS/tools/json_keys.py" "$1" "$OUT" 2>>"$ERR"
}
