#!/bin/bash
# tests/e2e/chat_terminal.sh - straddle chat on a terminal: pasted text, Ctrl-C,
# several lines, history, a window that changes its width, a stop, files.
# tools/chat_terminal.py has the cases; they wait for output, not for time.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

CASES=$TESTS/tools/chat_terminal.py
export PYTHONDONTWRITEBYTECODE=1

for case in $(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$CASES"); do
	mkdir "$T/$case"
	cd "$T/$case"
	run_any "$PYTHON" "$CASES" "$case" "$BIN" "$MODEL"
	check "${case//_/ }" is_success
done
e2e_end
