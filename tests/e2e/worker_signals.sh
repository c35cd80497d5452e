#!/bin/bash
# tests/e2e/worker_signals.sh - the terminal's signals are the coordinator's: a
# worker ignores them.  The coordinator's death ends every worker.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

LONG=(run -m "$MODEL" -p "In the beginning" -n 100000 --ctx 65536
    --ignore-eos --temp 0 -q --recover 0 -s a=cpu,threads=1 -s b=cpu,threads=1)

size() { wc -c <"$OUT"; }
has_text() { [ "$(size)" -gt 8 ]; }
grows() { [ "$(size)" -gt "$before" ]; }

straddle_bg "${LONG[@]}"
check "text is printed while it is generated" eventually has_text
pids=($(workers))
check "there are two workers" equal 2 "${#pids[@]}"

# mask PID FIELD: a set of signals of the process, in hexadecimal.
mask() { sed -n "s/^$2:\t//p" "/proc/$1/status"; }
ignores() { [ $((0x$(mask "$1" SigIgn) >> ($2 - 1) & 1)) -eq 1 ]; }

for pid in "${pids[@]}"; do
	for signal in INT QUIT PIPE; do
		check "a worker ignores SIG$signal" ignores "$pid" \
		    "$(kill -l $signal)"
	done
	check "a worker can be ended with SIGTERM" \
	    eval '! ignores "$pid" 15'
	# The coordinator blocks SIGINT, SIGTERM and SIGHUP for itself.
	check "a worker blocks no signal" equal 0000000000000000 \
	    "$(mask "$pid" SigBlk)"
done
for pid in "${pids[@]}"; do
	kill -INT "$pid"
	kill -QUIT "$pid"
done
before=$(size)
check "the run goes on" eventually grows
check "the same workers run" equal "${pids[*]}" "$(workers | tr '\n' ' ' |
    sed 's/ $//')"
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends
check "no process is left" no_process_left

run_any "$PYTHON" "$TESTS/tools/orphan.py" "$BIN" "${LONG[@]}"
check "a stopped worker ends with a coordinator that was killed" exits 0

e2e_end
