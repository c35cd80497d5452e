#!/bin/bash
# tests/run.sh - run test programs side by side and sum up.
#
# usage: B=build tests/run.sh ITEM...
#
# ITEM is a program, a script, or replay:NAME (a fuzzer's corpus through its
# plain main).  Each runs under a time limit; its output is shown when it fails
# or is skipped.  Exit 77 is skipped, anything else but 0 failed.
#
#   FULL=1       every combination instead of a sample (make check-all)
#   JOBS=N       programs at once (default: twice the cores, because many tests
#                spend their time waiting)
#   TIME_S=N     limit of each (default 900)
#   DRAW=N       one in N of the long tests in tests/tools/repeated.txt; the others
#                are named (default 1: all); STRADDLE_SEED repeats the choice
#   RUN=CMD      put in front of binaries (an emulator)
set -u

export B=${B:-build}
export TIME_S=${TIME_S:-900}
export FULL=${FULL:-}
# Time limits are for tests that hang.  The limits of single tests suit a quiet
# machine; side by side, a test may get a core for a tenth of the time.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-10}
export STRADDLE_TESTS=${STRADDLE_TESTS:-tests}
export RUN=${RUN:-}
case $B in
*/thread)	TIME_S=$((TIME_S * 4)) ;;
*/aarch64*)
	# No -L: the cross toolchain's loader does not match the libraries of
	# Debian's arm64 packages, and forked processes would hang.
	RUN=qemu-aarch64
	export STRADDLE_LAUNCH=$RUN
	printf '#!/bin/sh\nexec %s %s/straddle "$@"\n' "$RUN" \
	    "$(realpath "$B")" >"$B/straddle.sh"
	chmod +x "$B/straddle.sh"
	export STRADDLE_BIN=${STRADDLE_BIN:-$B/straddle.sh}
	TIME_S=$((TIME_S * 4))
	;;
esac
[ -z "$FULL" ] || TIME_S=$((TIME_S * 4))
export STRADDLE_BIN=${STRADDLE_BIN:-$B/straddle}

out=$(mktemp -d)
export out
trap 'rm -rf "$out"' EXIT

# The inputs that a fuzzer's plain main replays.
seeds() {
	ls "$STRADDLE_TESTS/corpus/$1"/* 2>/dev/null
	[ "$1" != conf ] || ls "$STRADDLE_TESTS"/conf/*.in config/*.conf
}
export -f seeds

name_of() {
	local name=${1%.sh}

	name=${name%.py}
	name=${name#"$B/"}
	echo "${name#tests/}"
}
export -f name_of

run_one() {
	local item=$1 name t0 rc
	name=$(name_of "$item")
	t0=$(date +%s%N)
	case $item in
	replay:*)
		name=fuzz/${item#replay:}
		set -- $RUN "$B/tests/$name" $(seeds "${item#replay:}")
		;;
	*.sh)		set -- bash "$item" ;;
	*.py)		set -- python3 "$item" ;;
	*/ring_loop)	set -- bash "$STRADDLE_TESTS/check/ring_loop.sh" ;;
	*)		set -- $RUN "$item" ;;
	esac
	mkdir -p "$out/$(dirname "$name")"
	timeout -k 10 "$TIME_S" "$@" >"$out/$name.log" 2>&1 </dev/null
	rc=$?
	t0=$(( ($(date +%s%N) - t0) / 1000000 ))
	case $rc in
	0)	printf 'ok    %-24s %6d ms\n' "$name" $t0; : >"$out/$name.ok" ;;
	77)	printf 'skip  %-24s %s\n' "$name" "$(tail -n 1 "$out/$name.log")"
		: >"$out/$name.skip" ;;
	*)	printf 'FAIL  %-24s %6d ms, exit %d\n' "$name" $t0 $rc
		sed 's/^/      /' "$out/$name.log" | tail -n 60
		: >"$out/$name.bad" ;;
	esac
	# Show what a test left out and what it measured, even when it passed.
	[ $rc = 0 ] && grep -h '^skipped\|^worst' "$out/$name.log" | sed 's/^/      /'
	return 0
}
export -f run_one

# draw SEED ITEM...: set KEPT to the items without the repeated tests that are not
# drawn, and DROPPED to the names of those.
draw() {
	local seed=$1 item name left=0 want

	shift
	for item; do
		is_repeated "$item" && left=$((left + 1))
	done
	want=$(((left + DRAW - 1) / DRAW))
	RANDOM=$seed
	KEPT=() DROPPED=
	for item; do
		if ! is_repeated "$item"; then
			KEPT+=("$item")
			continue
		fi
		if [ $((RANDOM % left)) -lt $want ]; then
			KEPT+=("$item")
			want=$((want - 1))
		else
			DROPPED+=" $(name_of "$item")"
		fi
		left=$((left - 1))
	done
}

is_repeated() {
	local mark='( one-thread)?'

	[[ $B != */thread ]] || mark=' one-thread'
	grep -qxE "$(name_of "$1")$mark" "$STRADDLE_TESTS/tools/repeated.txt"
}

if [ "${DRAW:-1}" -gt 1 ]; then
	seed=${STRADDLE_SEED:-$RANDOM}
	draw "$seed" "$@"
	set -- "${KEPT[@]}"
	[ -z "$DROPPED" ] ||
	    echo "skipped, not drawn with STRADDLE_SEED=$seed DRAW=$DRAW:$DROPPED"
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-$((2 * $(nproc)))}" \
    bash -c 'run_one "$0"'

count() { find "$out" -name "*.$1" | wc -l; }
echo "$(count ok) passed, $(count bad) failed, $(count skip) skipped"
[ "$(count bad)" = 0 ] && [ "$(count ok)" != 0 ]
