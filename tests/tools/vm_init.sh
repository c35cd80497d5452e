#!/bin/bash
# tests/tools/vm_init.sh - first process of the virtual machine that tests/tools/vm.sh
# boots: sets up the system as systemd would and tests memory groups of cgroup v2.
export PATH=/bin:/usr/bin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
ln -sf /proc/self/fd /dev/fd
cd /straddle || exit
G=/sys/fs/cgroup
BAD=0
# Emulated cores that wait for each other are slow: one is enough for most.
SECOND=/sys/devices/system/cpu/cpu1/online
[ -z "${STRADDLE_SLOW-}" ] || echo 0 >$SECOND
echo "vm: $(uname -r), controllers: $(cat $G/cgroup.controllers)"

# check LABEL COMMAND...: the command succeeds.
check()
{
	local label=$1

	shift
	if "$@"; then
		echo "vm: ok: $label"
	else
		echo "vm: FAILED: $label"
		cat /tmp/out /tmp/err 2>/dev/null | head -n 20
		BAD=1
	fi
}

has_no_groups() { ! ls -d "$1"/straddle* >/dev/null 2>&1; }
is_enforced_by() { [ "$(grep -c "^cpu[0-3] .* $1\$" /tmp/err)" = 4 ]; }

# run_in_scope BUSY COMMAND...: run the command alone in a group that the user owns, as
# `systemd-run --user --scope -p Delegate=yes` does.  BUSY=1: another process is in the
# group too.
run_in_scope()
{
	local busy=$1

	shift
	mkdir -p $G/user/scope
	echo +memory >$G/cgroup.subtree_control
	echo +memory >$G/user/cgroup.subtree_control
	chown nobody $G/user/scope $G/user/scope/cgroup.procs \
	    $G/user/scope/cgroup.subtree_control \
	    $G/user/scope/cgroup.threads
	if [ "$busy" = 1 ]; then
		sleep 1000 &
		echo $! >$G/user/scope/cgroup.procs
	fi
	bash -c 'echo $$ >'$G'/user/scope/cgroup.procs
	    exec setpriv --reuid=nobody --regid=nogroup --clear-groups \
	    --inh-caps=-all "$@"' _ "$@" </dev/null >/tmp/out 2>/tmp/err
	local rc=$?
	if [ "$busy" = 1 ]; then
		kill %1
		wait 2>/dev/null
	fi
	return $rc
}

RUN="build/straddle run -c config/demo.conf -p In -n 4 --temp 0"

check "a run in a delegated scope succeeds" run_in_scope 0 $RUN
check "cgroup v2 enforces the caps" is_enforced_by "cgroup v2"
cat /tmp/err
check "no group is left in the scope" has_no_groups $G/user/scope
check "the scope delegates no controller afterwards" \
    test -z "$(cat $G/user/scope/cgroup.subtree_control)"
check "a second run in the scope succeeds" run_in_scope 0 $RUN
check "a run in a scope with another process succeeds" run_in_scope 1 $RUN
check "RLIMIT_DATA enforces the caps then" is_enforced_by RLIMIT_DATA
grep '^caps' /tmp/err
check "a note names the other processes as the reason" \
    grep -q "other processes are in the group" /tmp/err
check "no group is left of the attempt" has_no_groups $G/user/scope
rmdir $G/user/scope
mkdir $G/user/scope
# A worker that exceeds its cap: the launcher starts another program instead.
cat >/tmp/eater <<-'END'
	#!/bin/sh
	case $(cat /proc/self/cgroup) in
	*straddle.*.glutton*)
		exec python3 -c 'x = bytearray(200 << 20)' ;;
	esac
	exec "$@"
END
chmod 755 /tmp/eater
export STRADDLE_LAUNCH=/tmp/eater
check "a worker above its cap in a scope ends the run" \
    eval '! run_in_scope 0 build/straddle run \
    -m tests/data/kjv-q8_0.gguf -p In -n 1 -s modest=cpu,cap=160MiB \
    -s glutton=cpu,cap=64MiB'
unset STRADDLE_LAUNCH
cat /tmp/err
check "the error names the session and the numbers" \
    grep -q "session glutton: .*its group reached the \
limit of 64.0 MiB (67108864 bytes), peak 64.0 MiB" /tmp/err
check "no group is left after a lost worker" has_no_groups $G/user/scope

# Root becomes another user, who may not read the model; a keeper that stays root
# makes and removes the groups: in a scope of root's, in one of that user, and in the
# root group.
chmod 600 tests/data/kjv-q8_0.gguf
run_as_root()
{
	bash -c 'echo $$ >"$1"/cgroup.procs && shift && exec "$@"' _ "$@" \
	    </dev/null >/tmp/out 2>/tmp/err
}
mkdir -p $G/own
for scope in $G/own $G/user/scope $G; do
	check "root becomes a user in $scope" run_as_root $scope $RUN \
	    --user nobody -v
	check "cgroup v2 enforces the caps" is_enforced_by "cgroup v2"
	grep "keeps the memory groups," /tmp/err
	check "no group is left in $scope" has_no_groups $scope
	check "$scope delegates no controller" test $scope = $G -o \
	    -z "$(cat $scope/cgroup.subtree_control)"
done
check "its workers may have a priority above its own" run_as_root $G/own \
    build/straddle run -m tests/data/kjv-q8_0.gguf -p In -n 1 -v --user nobody \
    -s a=cpu,threads=1,cap=64MiB,priority=nice:-2
check "and lock the buffers of the load" grep -q "registered buffers" /tmp/err
eventually()
{
	local n

	for n in {1..600}; do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}
worker() { pgrep -f '^straddle: a '; }
: >/tmp/out
run_as_root $G/own build/straddle run -m tests/data/kjv-q8_0.gguf -p In \
    -n 1000000 --ctx 16384 --ignore-eos -v -s a=cpu,threads=1,cap=160MiB \
    --user nobody &
check "a user's run prints text" eventually test -s /tmp/out
kill -KILL $(worker)
check "its lost worker is replaced" eventually grep -q "recovered in" /tmp/err
check "by one in a group" grep -q '/straddle\..*\.a$' "/proc/$(worker)/cgroup"
kill -KILL $(pgrep -f '^build/straddle run')
wait
check "no group is left when it is killed" eventually has_no_groups $G/own
check "its scope delegates no controller" eventually eval \
    '[ -z "$(cat $G/own/cgroup.subtree_control)" ]'
chmod 644 tests/data/kjv-q8_0.gguf

# In the root group, which may have both processes and child groups.
check "unit tests of groups pass" build/tests/unit/cgroup
check "e2e/memory passes under cgroup v2" bash tests/e2e/memory.sh
check "no group is left in the root" has_no_groups $G

# The faults that need a group: as on a machine with cgroup v1.
run_fault() { python3 "tests/faults/$1.py" >/tmp/out 2>&1; }

echo "+memory +cpu" >$G/cgroup.subtree_control
check "faults/group_limit passes under cgroup v2" run_fault group_limit
echo 1 >$SECOND
check "faults/cpu_quota passes under cgroup v2" run_fault cpu_quota
grep -h "passed" /tmp/out

[ $BAD = 0 ] && echo "vm: all passed"
sync
echo o >/proc/sysrq-trigger
sleep 10
