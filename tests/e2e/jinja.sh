#!/bin/bash
# tests/e2e/jinja.sh - the template engine against Python's Jinja2, where that is
# installed, on random small templates.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

RENDER=$(dirname "$BIN")/tests/tools/jinja_render
e2e_need python3
python3 -c 'import jinja2' 2>/dev/null || e2e_skip "python3-jinja2 is not installed"

# Always the same templates, but for FULL.
if [ -n "${FULL-}" ]; then
	set -- "$SEED" 20000
else
	set -- 1 1000
fi
check "random templates render as with Jinja2" \
    python3 "$TESTS/tools/jinja_diff.py" "$RENDER" "$@"
e2e_end
