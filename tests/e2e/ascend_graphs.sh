#!/bin/bash
# tests/e2e/ascend_graphs.sh - on an Ascend processor, few rows are started by captured
# graphs, with the same bits; wrong or large graphs are not used.
# Nothing here runs on silicon.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"
. "${STRADDLE_TESTS:-tests}/tools/ascend.sh"

ARGS=(run -m "$MODEL" --ctx 128 --temp 0 -p "In the beginning" -n 6)

replays() { grep -q ' [1-9][0-9]* replays' "$T/report"; }
on 910B $FLOATS capture=0
first "not captured" -s ascend
on 910B $FLOATS
check_same "captured" -s ascend
check "captured: graphs run" replays
check_success "explain" explain -m "$MODEL" -s ascend --json
check "explain says so" stdout_has '16-bit floats, made from Q8_0, captured"'
for switch in capture=0 graph-stale=1 graph-drops=Mm graph-rebinds=Mm \
    graph-bytes=100000000; do
	on 910B $FLOATS $switch
	check_same "$switch" -s ascend
	check_success "$switch: explain" explain -m "$MODEL" -s ascend --json
	check "$switch: explain has the reason" stdout_has \
	    'not captured: (failed with 207000|a replay|a graph needs)'
done
# plan_is_enough LABEL: with a cap of what the plan counts.
plan_is_enough()
{
	check_success "$1: plan" plan -m "$MODEL" -s ascend --json
	check_same "$1: the plan is enough" \
	    -s ascend,cap=$(($(planned_mib) + 1))MiB
}
on 910B $FLOATS graph-bytes=1000000
plan_is_enough "graphs of 1 MB"
# The probe has 4 captures; from the session's third on there are no more.
on 910B $FLOATS fail=aclmdlRICaptureEnd:507903@7
check_same "a capture that fails" -s ascend
check "a capture that fails: it says so" stderr_has \
    'no more products are captured: .*aclmdlRICaptureEnd failed with 507903'

# Norms and SwiGLU with their products, too, in the same graph.
on 910B $NORMS
first "captured norms" -s ascend
check "captured norms: graphs run" replays
on 910B $NORMS capture=0
check_same "norms, not captured" -s ascend -s ascend
on 910B $NORMS
check_success "explain captured norms" explain -m "$MODEL" -s ascend --json
for what in aclnnRmsNorm 'aclnnSilu and aclnnMul'; do
	check "explain: $what is captured" stdout_has "\"$what, .*, captured\""
done
check_success "devices: captured norms" devices
check "devices names what is captured" stdout_has \
    'captured graphs +ok: products of few rows, with norms and SwiGLU'
# Where only their graphs are wrong, products are captured as before.
choose graph-drops=Silu graph-drops=RmsNorm graph-rebinds=Cast graph-rebinds=Silu
for switch in "${CHOSEN[@]}"; do
	on 910B $NORMS $switch
	check_same "$switch" -s ascend -s ascend
	check "$switch: graphs of products run" replays
	check_success "$switch: explain" explain -m "$MODEL" -s ascend --json
	check "$switch: explain has the reason for norms" stdout_has \
	    '"aclnnRmsNorm, .*, not captured: a replay gives'
	check "$switch: products are captured" stdout_has \
	    '16-bit floats, made from Q8_0, captured"'
done
on 910B $NORMS abort=aclmdlRIExecuteAsync@6
check_success "a graph of a norm ends the probe" devices
check "a graph of a norm ends the probe: products are captured" eval \
    'tr -s " \n" "  " <"$OUT" | grep -q \
    "few rows, without norms and SwiGLU (the trial ends its process)"'
on 910B $NORMS graph-bytes=1000000
plan_is_enough "norms in graphs of 1 MB"
# Below the bound of 64 MiB each graph is in the plan, with residual sums, too.
on 910B $SUMS
first "captured sums" -s ascend
on 910B $SUMS graph-bytes=200000
plan_is_enough "sums in graphs of 200 kB"
e2e_end
