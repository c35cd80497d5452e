#!/bin/bash
# tests/e2e/rights.sh - started by root: what each process keeps of root's rights.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

[ "$(id -u)" = 0 ] || e2e_skip "only root has rights to give up"
OTHER=nobody
id "$OTHER" >/dev/null || e2e_skip "there is no user $OTHER"

ENDLESS=(-p "In the beginning" -n 100000 --ctx 65536 --ignore-eos -v)
NONE=0000000000000000
SETPCAP=8 IPC_LOCK=14

# A folder and a model that only another user may open.
PRIVATE=$T/private
mkdir "$PRIVATE"
cp "$MODEL" "$PRIVATE/model.gguf"
chmod 600 "$PRIVATE/model.gguf"
chmod 700 "$PRIVATE"
chown -R "$OTHER" "$PRIVATE"

has_text() { [ "$(wc -c <"$OUT")" -gt 8 ]; }
# status PID NAME: a line of /proc/PID/status.
status() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }
# held PID NAME BIT...: does the set hold none but these?
holds_only()
{
	local set=$((16#$(status "$1" "$2"))) bit

	for bit in "${@:3}"; do
		set=$((set & ~(1 << bit)))
	done
	[ "$set" -eq 0 ]
}
may_set() { (($((16#$(status $$ CapEff))) >> $1 & 1)); }
no_group_left()
{
	[ -z "$(find /sys/fs/cgroup -maxdepth 8 -type d -name "straddle.$1.*")" ]
}

# --- capabilities ---

straddle_bg run -m "$PRIVATE/model.gguf" "${ENDLESS[@]}" -s a=cpu,threads=1
check "root may read the model of another user" eventually has_text
for pid in $GROUP $(readers) $(workers); do
	for set in CapPrm CapEff CapInh CapAmb; do
		check "$set of process $pid is empty" equal $NONE \
		    "$(status "$pid" $set)"
	done
	! may_set $SETPCAP || [ "$pid" = "$GROUP" ] ||
		check "nothing that process $pid executes has capabilities" \
		    equal $NONE "$(status "$pid" CapBnd)"
done
! may_set $SETPCAP || check "children may lock memory, and drop that right" \
    holds_only "$GROUP" CapBnd $SETPCAP $IPC_LOCK
check "-v names what is kept while files are opened" stderr_has \
    "^straddle: rights: root, with CAP_DAC_OVERRIDE \(files .*CAP_SETPCAP \("
check "-v names what workers have" stderr_has \
    "^straddle: rights: workers until they are confined: .*CAP_IPC_LOCK \("
check "-v says that nothing is kept" stderr_has \
    "^straddle: rights: from here on no capability$"
kill -KILL $(workers)
check "a lost worker is replaced" eventually stderr_has "recovered in"
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends
check "no process is left" no_process_left
check "no group is left" no_group_left "$GROUP"

straddle run -m "$MODEL" -p "In the" -n 2 -v -s a=cpu,priority=nice:-2
check "a priority above the user's works" is_success
check "its right is named" stderr_has "CAP_SYS_NICE \(the priorities"

straddle eval -m "$MODEL" --ids "1 2 3" --logits "$PRIVATE/logits" -v
check "an output goes to a folder of another user" is_success
check "it is there" eval '[ -s "$PRIVATE/logits" ]'
check "the right for it is named" stderr_has "from here on CAP_DAC_OVERRIDE \("
straddle quantize "$MODEL" "$PRIVATE/out.gguf" Q4_0
check "quantize writes to a folder of another user" is_success
printf '%s\n' "In the" "/save $PRIVATE/talk.json" >"$T/lines"
INPUT=$T/lines straddle chat -m "$MODEL" -n 2 --temp 0
check "chat saves to a folder of another user" is_success
check "it is there" eval '[ -s "$PRIVATE/talk.json" ]'
check_success "stress opens the model again for each case" \
    stress -m "$PRIVATE/model.gguf" -s a=cpu,threads=1 -s b=cpu,threads=1 \
    --only 'kill -9 of each worker in decode'

e2e_end
