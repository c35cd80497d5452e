#!/bin/bash
# tests/e2e/rights.sh - started by root: what each process keeps of root's rights,
# and what goes on working once the user is another.
set -eu
. "${STRADDLE_TESTS:-tests}/e2e/lib.sh"

[ "$(id -u)" = 0 ] || e2e_skip "only root has rights to give up"
OTHER=nobody
id "$OTHER" >/dev/null || e2e_skip "there is no user $OTHER"

ENDLESS=(-p "In the beginning" -n 100000 --ctx 65536 --ignore-eos -v)
NONE=0000000000000000
SETPCAP=8 IPC_LOCK=14 SYS_RESOURCE=24

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

# --- another user ---

# Programs and folders that any user may enter; the model is root's alone.
chmod 711 "$T"
cp "$MODEL" "$T/secret.gguf"
chmod 600 "$T/secret.gguf"
SECRET=$T/secret.gguf UID_OF=$(id -u "$OTHER") GID_OF=$(id -g "$OTHER")
sorted() { tr -s ' ' '\n' <<<"$1" | grep . | sort; }
four() { printf '%s\t%s\t%s\t%s' "$1" "$1" "$1" "$1"; }
KEPT='^straddle: rights: process \([0-9]*\), which keeps the memory groups'
keeper() { sed -n "s/$KEPT.*/\1/p" "$ERR"; }
no_keeper() { [ -z "$(keeper)" ] || [ ! -e "/proc/$(keeper)" ]; }

check_refusal "an unknown user is refused" 2 \
    "user no-such-user: there is none .*create it, or name another" \
    run -m "$MODEL" -p x --user no-such-user
straddle plan --check -m "$MODEL" --user "$OTHER"
check "plan --check prints the key" stdout_has "^user = \"$OTHER\"$"
straddle run -m "$MODEL" -p "In the" -n 2 --user root -v
check "--user root changes nothing" eval 'is_success &&
    stderr_has "from here on no capability"'
if command -v setpriv >/dev/null; then
	cp "$BIN" "$T/straddle"
	cp "$MODEL" "$T/open.gguf"
	as() { run_any setpriv --reuid="$OTHER" --regid="$GID_OF" \
	    --clear-groups "$T/straddle" "$@"; }
	as tokenize "$T/open.gguf" -p "In the" --user root
	check "a plain user cannot become another" is_refusal 2 \
	    "user root: only root can become another user: start this as root"
	as tokenize "$T/open.gguf" -p "In the" --user "$OTHER"
	check "a plain user may name itself" is_success
fi

straddle_bg run -m "$SECRET" "${ENDLESS[@]}" -s a=cpu,threads=1 \
    -s b=cpu,threads=1 --user "$OTHER"
check "a model that only root may read is read" eventually has_text
check "there is a reader" [ -n "$(readers)" ]
for pid in $GROUP $(readers) $(workers); do
	check "process $pid has that user" equal "$(four "$UID_OF")" \
	    "$(status "$pid" Uid)"
	check "process $pid has its group" equal "$(four "$GID_OF")" \
	    "$(status "$pid" Gid)"
	check "process $pid has its other groups, and none of root's" equal \
	    "$(sorted "$(id -G "$OTHER")")" "$(sorted "$(status "$pid" Groups)")"
	for set in CapPrm CapEff CapInh CapAmb CapBnd; do
		! may_set $SETPCAP || check "$set of process $pid is empty" \
		    equal $NONE "$(status "$pid" $set)"
	done
	check "process $pid cannot gain privileges" equal 1 \
	    "$(status "$pid" NoNewPrivs)"
done
check "-v says who it is" stderr_has \
    "^straddle: rights: from here on user $OTHER, no capability$"
has_groups=
! stderr_has "memory groups, stays root, with no capability$" || has_groups=1
if [ -n "$has_groups" ]; then
	keeper=$(keeper)
	check "a keeper of groups stays root" equal "$(four 0)" \
	    "$(status "$keeper" Uid)"
	for set in CapPrm CapEff CapInh CapAmb CapBnd; do
		! may_set $SETPCAP || check "$set of the keeper is empty" \
		    equal $NONE "$(status "$keeper" $set)"
	done
	check "it cannot gain privileges" equal 1 "$(status "$keeper" NoNewPrivs)"
	check "it has the coordinator's limit" equal \
	    "$(grep "^Max data size" "/proc/$GROUP/limits")" \
	    "$(grep "^Max data size" "/proc/$keeper/limits")"
	check "it holds nothing but its channel and the groups" is_blank "$(find \
	    "/proc/$keeper/fd" -type l -printf '%l\n' |
	    grep -v -e '^/dev/null$' -e '^socket:' -e '/straddle\.[^/]*$' ||
	    true)"
	groups() { find /sys/fs/cgroup -type d -name "straddle.$GROUP.*"; }
	check "there are two groups" equal 2 "$(groups | wc -l)"
	check "their limits are root's" is_blank "$(find $(groups) ! -user root)"
fi
recovered() { [ "$(grep -c "recovered in" "$ERR")" -ge "$1" ]; }
lost()
{
	kill -KILL "$(workers | sed -n "$1p")"
	check "lost worker $1 is replaced" eventually recovered "$1"
}
# Those that were killed may still be there for a moment.
in_groups()
{
	equal "$(workers)" \
	    "$(cat $(groups | sed 's|$|/cgroup.procs|') | sort -n)"
}
lost 1
lost 2
check "it reads around the page cache, as before" equal \
    "$(grep -c 'io_uring, direct' "$ERR")" \
    "$(grep -c 'session [ab]: pid .* read' "$ERR")"
[ -z "$has_groups" ] ||
	check "they are in the groups of the lost" eventually in_groups
kill -TERM "$GROUP"
check "SIGTERM ends the run" command_ends
check "no process is left" no_process_left
check "no group is left" no_group_left "$GROUP"
check "no keeper is left" eventually no_keeper

for signal in QUIT KILL; do
	straddle_bg run -m "$SECRET" "${ENDLESS[@]}" -s a=cpu,threads=1 \
	    --user "$OTHER"
	check "it runs" eventually has_text
	kill -$signal "$GROUP"
	check "SIG$signal ends the run" command_ends
	check "no process is left" eventually group_is_empty
	check "SIG$signal leaves no group" eventually no_group_left "$GROUP"
	check "no keeper is left" eventually no_keeper
done

# The reader of a conversation, twice.
mkfifo "$T/in"
INPUT=$T/in straddle_bg chat -m "$SECRET" -n 4 --temp 0 -q -s a=cpu,threads=1 \
    --user "$OTHER"
exec 8>"$T/in"
for n in 1 2 3; do
	kill -KILL $(readers) || true
	echo "In the beginning" >&8
	check "message $n has an answer" eventually eval \
	    '[ "$(wc -l <"$OUT")" -ge $n ]'
done
echo "/save $T/talk.json" >&8
echo "/save $PRIVATE/mine.json" >&8
exec 8>&-
check "the chat ends" command_ends
check "no process is left" no_process_left
check "a conversation is not saved where only root may write" stderr_has \
    "$T/talk.json: cannot create .* for user $OTHER: name a place that is open"
check "it is saved where the user may write" equal "$OTHER" \
    "$(stat -c %U "$PRIVATE/mine.json")"

check_refusal "eval refuses an output where only root may write" 2 \
    "$T/logits: cannot create .* for user $OTHER: .*or give --user root$" \
    eval -m "$SECRET" --ids "1 2 3" --logits "$T/logits" --user "$OTHER"
check_success "eval writes where the user may" eval -m "$SECRET" \
    --ids "1 2 3" --logits "$PRIVATE/mine.f32" --user "$OTHER"
check "the file is the user's" equal "$OTHER" \
    "$(stat -c %U "$PRIVATE/mine.f32")"
check "the logits are the same" cmp -s "$PRIVATE/logits" "$PRIVATE/mine.f32"
check_refusal "quantize refuses an output where only root may write" 2 \
    "$T/out.gguf: cannot create .* for user $OTHER: " \
    quantize "$SECRET" "$T/out.gguf" Q4_0 --user "$OTHER"
check_success "quantize writes where the user may" \
    quantize "$SECRET" "$PRIVATE/mine.gguf" Q4_0 --user "$OTHER"
check "the result is the same" cmp -s "$PRIVATE/out.gguf" "$PRIVATE/mine.gguf"
echo "In the beginning" >"$T/text"
chmod 600 "$T/text"
for cmd in "tokenize -f $T/text" inspect "run -f $T/text -n 2" \
    "eval --text $T/text --ctx 3" "plan --json" explain; do
	check_success "$cmd" ${cmd%% *} -m "$SECRET" --user "$OTHER" \
	    $([ "${cmd#* }" = "$cmd" ] || echo "${cmd#* }")
done
straddle run -m "$SECRET" -p "In the" -n 2 -q --json --user "$OTHER"
check "the keeper has a row" equal \
    "coordinator reader${has_groups:+ keeper}" "$("$PYTHON" -c '
import json, sys
print(*[p["name"] for p in json.load(open(sys.argv[1]))["processes"]])' "$OUT")"

for case in "caps equal to the plan" "kill -9 of each worker in load" \
    "kill -9 of the coordinator"; do
	check_success "stress: $case" stress -m "$SECRET" --only "$case" \
	    -s a=cpu,threads=1 -s b=cpu,threads=1 --user "$OTHER"
done
check_success "bench" bench -m "$SECRET" -p 8 -n 2 -r 1 --load --sweep 1,2 \
    -s a=cpu,threads=1 --user "$OTHER"
# The default user, where the machine has it: as if it had, if need be.
{ cat /etc/passwd; echo "straddle:x:$UID_OF:$GID_OF::/nowhere:/bin/false"; } \
    >"$T/passwd"
if unshare -m true 2>/dev/null; then
	run_any unshare -m sh -c 'mount --bind "$1" /etc/passwd && shift &&
	    exec "$@"' sh "$T/passwd" "$BIN" run -m "$SECRET" -p "In the" -n 2 -v
	check "root becomes the default user" eval \
	    'is_success && stderr_has "from here on user straddle, no cap"'
fi
printf 'model = "%s"\nuser = "%s"\n' "$SECRET" "$OTHER" >"$T/user.conf"
straddle run -c "$T/user.conf" -p "In the" -n 2 -v
check "the user of a config file" eval \
    'is_success && stderr_has "from here on user $OTHER"'

straddle run -m "$SECRET" -p "In the" -n 2 -s a=cpu,priority=nice:-2 \
    --user "$OTHER"
if may_set $SYS_RESOURCE; then
	check "a priority above the user's works" is_success
else
	check "a priority above the user's needs a limit" is_refusal 1 \
	    "priority.*RLIMIT_NICE"
fi
cp "$BIN" "$T/mine"
chmod 700 "$T/mine"
run_any "$T/mine" run -m "$SECRET" -p "In the" -n 2 --user "$OTHER"
check "a program that only root may execute" is_refusal 1 \
    "the reader.* could not be started .*executed by user $OTHER"

if hide_groups; then
	straddle_bg run -m "$SECRET" "${ENDLESS[@]}" -s a=cpu,threads=1 \
	    --user "$OTHER"
	check "without groups it runs, too" eventually has_text
	check "its cap is a limit" eventually stderr_has "session a: .*ready"
	! grep -q '^Max data size  *unlimited' "/proc/$(workers)/limits" ||
		sanitized || fail "no limit is in force"
	kill -KILL $(workers)
	check "a lost worker is replaced" eventually stderr_has "recovered in"
	kill -TERM "$GROUP"
	check "SIGTERM ends the run" command_ends
	check "no process is left" no_process_left
	restore_groups
fi

if command -v qemu-hexagon >/dev/null &&
    [ -e "$(dirname "$BIN")/hexagon-domain" ]; then
	EMULATED=1
	straddle_bg run -m "$MODEL" -p "In the" -n 100 --ctx 128 --batch 8 \
	    -s h=hexagon,port=emulated,threads=1,cap=512MiB
	emulator() { pgrep -g "$GROUP" -n -f hexagon-domain; }
	check "an emulator runs" eventually [ -s "$OUT" ]
	for set in CapPrm CapEff CapBnd; do
		! may_set $SETPCAP || check "$set of the emulator is empty" \
		    equal $NONE "$(status "$(emulator)" $set)"
	done
	kill -TERM "$GROUP"
	check "SIGTERM ends the run" command_ends
	check "no process is left" no_process_left
	straddle run -m "$SECRET" -p "In the" -n 1 --ctx 64 --batch 8 -v \
	    -s h=hexagon,port=emulated,threads=1,cap=512MiB --user "$OTHER"
	check "a Hexagon domain under emulation" eval 'is_success &&
	    stderr_has "from here on user $OTHER"'
	standin=$(dirname "$BIN")/tests/standin
	if [ -e "$standin/libcdsprpc.so" ]; then
		LD_LIBRARY_PATH=$standin straddle run -m "$SECRET" \
		    -p "In the" -n 1 --ctx 64 --batch 8 -v \
		    -s h=hexagon,port=fastrpc,threads=1 --user "$OTHER"
		check "one behind its vendor's library" eval 'is_success &&
		    stderr_has "from here on user $OTHER"'
	fi
fi

e2e_end
