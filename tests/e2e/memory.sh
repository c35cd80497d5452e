#!/bin/bash
# tests/e2e/memory.sh - the memory that the plan predicts is the memory that the
# kernel counts, with the enforcement that this machine has: a cgroup where this
# user may create one, and RLIMIT_DATA.  A worker above its cap is killed, alone,
# and leaves no group.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

! sanitized || e2e_skip "a sanitizer's shadow memory is in no plan"

# --- plan and peak ---

# A session has all its memory before the first token, so where every run is many
# times slower a single token shows the same peak.
SLOW=${STRADDLE_SLOW:-0}
PROMPT=$(seq -s ' ' 1 60) N=8
[ "$SLOW" = 0 ] || { PROMPT=In N=1; }
: >"$T/errors"

# Each session's peak is within its cap, within 2 % or 4 MiB of its plan, and
# accounted for to 1 % or 4 MiB.  Adds a line per session to $T/errors.
within_plan()
{
	"$PYTHON" - "$T/plan.json" "$OUT" "$T/errors" "$@" 2>>"$ERR" <<-'END'
	import json, sys
	plan, run = (json.load(open(p))['sessions'] for p in sys.argv[1:3])
	log = open(sys.argv[3], 'a')
	assert len(plan) == len(run) > 0
	for p, r in zip(plan, run):
	    planned = sum(p[k] for k in ('weights', 'kv', 'compute',
	                                 'staging', 'rings', 'runtime',
	                                 'emulator'))
	    peak, name = r['peak'], r['name']
	    off = peak - planned
	    print(abs(off), off, planned, r['enforced_by'],
	          *sys.argv[4:], file=log, sep='\t')
	    assert p['layers'] == r['layers'], f'{name}: run and plan split differently'
	    assert peak <= r['cap'], f'{name}: {peak} over its cap {r["cap"]}'
	    assert abs(off) <= max(planned * 0.02, 4 << 20), \
	        f'{name}: peak {peak}, planned {planned}: {off:+}'
	    assert abs(r['unaccounted']) <= max(peak * 0.01, 4 << 20), \
	        f'{name}: {r["unaccounted"]} of {peak} not accounted for'
	END
}

memory()
{
	straddle plan --json "$@"
	cp "$OUT" "$T/plan.json"
	straddle run -p "$PROMPT" -n "$N" --json -q --temp 0 "$@"
	check "the run succeeds: $*" is_success
	check "memory is as planned: $*" within_plan "$*"
}

make_model wide q4_k --ctx 8192
make_model plain f32 --tied --bias --ctx 4096

# Varied contexts, batches, KV types, sessions, threads and models.
run_some_configurations()
{
	local kjv="-m $MODEL"

	memory $kjv -s cpu,cap=64MiB
	memory $kjv -s cpu,cap=64MiB --ctx 256 --batch 1
	memory $kjv -s cpu,cap=512MiB --ctx 32768 --kv-type q8_0
	memory $kjv $(sessions 4 cpu,cap=24MiB)
	memory $kjv $(sessions 8 cpu,cap=64MiB) --batch 512
	memory $kjv $(sessions 3 cpu,cap=96MiB,threads=1) --batch 2048
	memory $kjv -s cpu,cap=64MiB,threads=8
	memory -m "$T/wide.gguf" $(sessions 2 cpu,cap=64MiB)
}

run_more_configurations()
{
	local kjv="-m $MODEL"

	memory $kjv -s cpu,cap=64MiB --ctx 256
	memory $kjv -s cpu,cap=64MiB --ctx 512 --batch 512
	memory $kjv -s cpu,cap=512MiB --ctx 32768 --kv-type f32
	memory $kjv -s cpu,cap=512MiB --ctx 32768 --kv-type f16
	memory $kjv -s cpu,cap=2GiB --ctx 131072 --kv-type f16
	memory $kjv -s cpu
	memory $kjv $(sessions 2 cpu,cap=64MiB)
	memory $kjv $(sessions 2 cpu,cap=64MiB,threads=3) --kv-type f32
	memory $kjv $(sessions 4 cpu,cap=128MiB) --ctx 32768 --kv-type f16
	memory $kjv $(sessions 10 cpu,cap=64MiB) --ctx 1024 --kv-type q8_0
	memory $kjv $(sessions 5 cpu,cap=512MiB) --batch 4096 --ctx 4096
	memory $kjv -s cpu,cap=64MiB -s null,cap=64MiB -s cpu,cap=64MiB
	memory -m "$T/wide.gguf" -s cpu,cap=64MiB --ctx 8192
	memory -m "$T/plain.gguf" -s cpu,cap=64MiB --kv-type f32
	memory -m "$T/plain.gguf" $(sessions 3 cpu,cap=32MiB) --batch 16
}

print_worst()
{
	sort -nr "$T/errors" | "$PYTHON" -c 'import sys
rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
_, off, planned, by, args = rows[0]
off, planned = int(off), int(planned)
runs = len({(r[3], r[4]) for r in rows})
print(f"worst error of {runs} configurations ({len(rows)} sessions) under "
      f"{sys.argv[1]}: {off / 2**20:+.2f} MiB of {planned / 2**20:.2f} planned "
      f"({100 * off / planned:+.1f} %)")' "$1"
}

straddle run -m "$MODEL" -p In -n 1 --json -q
HELD_BY=$("$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["sessions"][0]["enforced_by"])' "$OUT")
run_some_configurations
run_more_configurations
print_worst "$HELD_BY"

if [ "$HELD_BY" != RLIMIT_DATA ] && hide_groups; then
	: >"$T/errors"
	run_some_configurations
	print_worst RLIMIT_DATA
	straddle run -m "$MODEL" -p In -n 1
	check "without groups RLIMIT_DATA enforces caps, or nothing does" \
	    stderr_has '^cpu0 .* (RLIMIT_DATA|ledger)$'
	check "without groups a note says why there is none" \
	    stderr_has '^caps: held by .* because .*/nowhere/proc/self/mountinfo'
	restore_groups
fi

# Caps of exactly the planned bytes, which the kernel enforces to the page.
if [ "$SLOW" = 0 ]; then
	straddle stress -c "$DEMO" --only "*caps equal to the plan"
	check "caps equal to the plan are enough" is_success
fi

# --- the advice of plan --fit ---

fitted()
{
	"$PYTHON" -c 'import json, sys
print(json.load(open(sys.argv[1]))["fit"][sys.argv[2]])' "$OUT" "$1"
}

check_success "plan --fit for sessions of 13 MiB" \
    plan -m "$MODEL" --fit --json \
    --ctx 512 --batch 64 -s cpu,cap=13MiB
n=$(fitted sessions)
check "plan --fit advises several sessions" test "$n" -gt 1
check_success "a run with that many sessions" \
    run -m "$MODEL" -p In -n 1 --ctx 512 --batch 64 \
    $(sessions "$n" cpu,cap=13MiB)
check_refusal "one session is refused with advice" 3 \
    "bytes short; what would fit: [0-9]+ sessions" \
    run -m "$MODEL" -p In -n 1 --ctx 512 --batch 64 -s cpu,cap=13MiB
check_success "plan --fit for two sessions of 14 MiB" \
    plan -m "$MODEL" --fit --json \
    $(sessions 2 cpu,cap=14MiB)
check_success "a run with the advised context, batch and KV types" \
    run -m "$MODEL" -p In -n 1 $(sessions 2 cpu,cap=14MiB) \
    --ctx "$(fitted context)" --batch "$(fitted batch)" \
    --kv-type-k "$(fitted kv_type_k)" --kv-type-v "$(fitted kv_type_v)"

# --- the kernel enforces the cap ---

# limit_of PID: the worker's memory limit: of its own group, or of its data.
limit_of()
{
	case $HELD_BY in
	"cgroup v1")	cat "$(group_of "$1")/memory.limit_in_bytes" ;;
	"cgroup v2")	cat "$(group_of "$1")/memory.max" ;;
	*)		awk '/^Max data size/ { print $4 }' "/proc/$1/limits" ;;
	esac
}

group_of()
{
	local at=$(mount -t cgroup,cgroup2 | awk -v by="$HELD_BY" \
	    'by ~ /v1/ && /[(,]memory[,)]/ || by ~ /v2/ && / cgroup2 / {
		print $3; exit }')

	awk -F: -v at="$at" -v by="$HELD_BY" \
	    'by ~ /v1/ && $2 ~ /(^|,)memory(,|$)/ || by ~ /v2/ && $1 == 0 {
		print at $3 }' "/proc/$1/cgroup"
}

# A program and a model that are not in the page cache.
cp "$BIN" "$T/cold"
cp "$MODEL" "$T/cold.gguf"
"$PYTHON" -c 'import os, sys
for path in sys.argv[1:]:
    with open(path) as fp:
        os.fsync(fp.fileno())
        os.posix_fadvise(fp.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)' \
    "$T/cold" "$T/cold.gguf"

# page_cache_of PID: bytes of page cache that its group is charged; its rings are
# shared memory, not page cache.
page_cache_of()
{
	awk '$1 ~ /^(in)?active_file$/ { n += $2 } END { print n + 0 }' \
	    "$(group_of "$1")/memory.stat"
}

BIN=$T/cold straddle_bg run -m "$T/cold.gguf" -p In -n 100000 --ctx 65536 \
    --ignore-eos -q -s a=cpu,cap=160MiB -s b=cpu,cap=160MiB
has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
check "text is printed while it is generated" eventually has_text
for pid in $(workers); do
	case $HELD_BY in
	cgroup*)	check "a worker's limit is its cap" \
			    equal 167772160 "$(limit_of "$pid")"
			check "a worker is charged no page cache" \
			    equal 0 "$(page_cache_of "$pid")"
			check "a worker is alone in its group" equal "$pid" \
			    "$(cat "$(group_of "$pid")/cgroup.procs")"
			stale="${stale-} $(group_of "$pid")" ;;
	RLIMIT_DATA)	check "a worker has a data limit" \
			    test "$(limit_of "$pid")" -lt 400000000 ;;
	esac
done
kill -KILL "$GROUP"
check "kill -9 of the coordinator ends the run" command_ends
check "its workers exit" eventually no_process_left
straddle plan -m "$MODEL"
for group in ${stale-}; do
	check "the next straddle removes the groups that were left" \
	    test ! -e "$group"
done

# The size of bench's read buffer depends on the limits of all groups above, not
# just on the machine's memory, which would allow 1 GiB.
if [ "$HELD_BY" = "cgroup v1" ] &&
    [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt 4194304 ]; then
	inside=$(group_of $$)/e2e.$$
	mkdir "$inside"
	echo 900M >"$inside/memory.limit_in_bytes"
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs\nexec %s "$@"\n' \
	    "$inside" "$BIN" >"$T/inside"
	chmod +x "$T/inside"
	BIN=$T/inside check_success "bench in a container of 900 MiB" bench \
	    -m "$MODEL" -p 8 -n 2 -r 1 --slice 1 -s cpu --json
	check "bench's read buffer is at most a quarter of that" "$PYTHON" -c \
	    'import json, sys
assert json.load(open(sys.argv[1]))["roofline"]["read_buffer"] < 236e6' "$OUT"
	eventually rmdir "$inside"
fi

# A worker that exceeds its cap: the launcher starts another program instead.
if [ "$HELD_BY" != RLIMIT_DATA ] && [ "$HELD_BY" != ledger ]; then
	cat >"$T/eater" <<-END
	#!/bin/sh
	case \$(cat /proc/self/cgroup) in
	*straddle.*.glutton*)
		exec $PYTHON -c 'x = bytearray(200 << 20)' ;;
	esac
	exec \${NEXT-} "\$@"
	END
	chmod +x "$T/eater"
	export NEXT=${STRADDLE_LAUNCH:-}
	STRADDLE_LAUNCH=$T/eater straddle run -m "$MODEL" -p In -n 1 \
	    --recover 0 -s modest=cpu,cap=160MiB -s glutton=cpu,cap=64MiB
	check "a worker above its cap: exit 1" exits 1
	check "a worker above its cap: session, cause and numbers are named" \
	    stderr_has "^straddle: session glutton: its \
worker was killed by signal 9 \(Killed\), for memory: its group reached the \
limit of 64.0 MiB \(67108864 bytes\), peak 64.0 MiB"
	check "a worker above its cap: one line, as no other worker is lost" \
	    equal 1 "$(wc -l <"$ERR")"
	check "a worker above its cap: no process is left" no_process_left
fi

e2e_end
