#!/bin/bash
# tests/check/ring_loop.sh - ring_loop without and with a killed process.
set -eu
prog="${RUN:-} ${B:-build}/tests/check/ring_loop"
seed=${STRADDLE_SEED:-$(date +%s)}
echo "STRADDLE_SEED=$seed"
$prog 2 2000 "$seed"
$prog 5 500 "$seed"
for i in 1 2 3 4; do
	$prog --kill 4 400 $((seed + i))
done
