# tests/tools/ascend.sh - sessions on an Ascend processor, with stand-ins for CANN's
# libraries.  Sourced after e2e/lib.sh; first() and check_same() need ARGS.

STANDIN=$(dirname "$BIN")/tests/standin
[ -e "$STANDIN/libascendcl.so" ] || e2e_skip "the stand-ins were not built"
export LD_LIBRARY_PATH=$STANDIN STRADDLE_ASCEND STRADDLE_ASCEND_ROOT=$T/root

# on SOC [SWITCH...]: the machine and its libraries from here on.
on()
{
	STRADDLE_ASCEND=soc=$1,report=$T/report
	shift
	for switch; do STRADDLE_ASCEND=$STRADDLE_ASCEND,$switch; done
	true >"$T/report"
	rm -rf "$T/.cache"	# the switches are not part of what a verdict is of
}

hash_of() { sed -n 's/^hash of the last logits: //p' "$ERR"; }
# The stand-ins count misuses, a line for each process; one that the library ended
# leaves its memory.
no_misuse()
{
	! stderr_has 'misuse' && [ -s "$T/report" ] &&
	    ! grep -v '; 0 misuses' "$T/report" &&
	    { [[ $STRADDLE_ASCEND == *abort=* ]] ||
	    ! grep -v 'now 0, 0, 0 blocks' "$T/report"; }
}

# FLOATS: a card without integers, whose results have 16 bits, and without norms computes
# as a board does.  NORMS: without the norm that adds, which has other bits.  SUMS: with
# it.
FLOATS=fail=WeightQuantBatchMatmulV2:561103+RmsNorm:561103
NORMS=fail=WeightQuantBatchMatmulV2:561103+AddRmsNorm:561103
SUMS=fail=WeightQuantBatchMatmulV2:561103

# first LABEL ARGS...: the run whose text and logits check_same() compares with.
first()
{
	check_success "$1" "${ARGS[@]}" "${@:2}"
	text=$(cat "$OUT") hash=$(hash_of)
}

# check_same LABEL ARGS...: the text and the logits of the first run.
check_same()
{
	local label=$1

	shift
	check_success "$label" "${ARGS[@]}" "$@"
	check "$label: the same text" equal "$(cat "$OUT")" "$text"
	check "$label: the same logits" equal "$(hash_of)" "$hash"
	check "$label: the library is not misused" no_misuse
}
