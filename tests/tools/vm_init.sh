#!/bin/bash
# tests/tools/vm_init.sh - the first process of the machine that tests/tools/vm.sh boots:
# sets up what systemd would, and runs the program under groups of v2.
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
echo "vm: $(uname -r), controllers: $(cat $G/cgroup.controllers)"

# verdict WHAT COMMAND...
verdict()
{
	local what=$1

	shift
	if "$@"; then
		echo "vm: ok: $what"
	else
		echo "vm: FAILED: $what"
		cat /tmp/out /tmp/err 2>/dev/null | head -n 20
		BAD=1
	fi
}

tidy() { ! ls -d "$1"/straddle* >/dev/null 2>&1; }
table_by() { [ "$(grep -c "^cpu[0-3] .* $1\$" /tmp/err)" = 4 ]; }

# As `systemd-run --user --scope -p Delegate=yes` does: a group of the user's,
# with the command alone in it.  keep=1: a shell stays beside it.
scope()
{
	local keep=$1

	shift
	mkdir -p $G/user/scope
	echo +memory >$G/cgroup.subtree_control
	echo +memory >$G/user/cgroup.subtree_control
	chown nobody $G/user/scope $G/user/scope/cgroup.procs \
	    $G/user/scope/cgroup.subtree_control \
	    $G/user/scope/cgroup.threads
	if [ "$keep" = 1 ]; then
		sleep 1000 &
		echo $! >$G/user/scope/cgroup.procs
	fi
	bash -c 'echo $$ >'$G'/user/scope/cgroup.procs
	    exec setpriv --reuid=nobody --regid=nogroup --clear-groups \
	    --inh-caps=-all "$@"' _ "$@" </dev/null >/tmp/out 2>/tmp/err
	local rc=$?
	if [ "$keep" = 1 ]; then
		kill %1
		wait 2>/dev/null
	fi
	return $rc
}

RUN="build/straddle run -c config/demo.conf -p In -n 4 --temp 0"

verdict "a delegated scope" scope 0 $RUN
verdict "held by cgroup v2" table_by "cgroup v2"
cat /tmp/err
verdict "nothing is left in it" tidy $G/user/scope
verdict "nor handed down" \
    test -z "$(cat $G/user/scope/cgroup.subtree_control)"
verdict "twice in a row" scope 0 $RUN
verdict "a scope with company" scope 1 $RUN
verdict "held by RLIMIT_DATA" table_by RLIMIT_DATA
grep '^caps' /tmp/err
verdict "who is in the way is said" \
    grep -q "other processes are in the group" /tmp/err
verdict "nothing is left of the attempt" tidy $G/user/scope
rmdir $G/user/scope
mkdir $G/user/scope
verdict "a worker that eats too much, in a scope" true
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
verdict "is the end of the run" eval '! scope 0 build/straddle run \
    -m tests/data/kjv-q8_0.gguf -p In -n 1 -s modest=cpu,cap=160MiB \
    -s glutton=cpu,cap=64MiB'
unset STRADDLE_LAUNCH
cat /tmp/err
verdict "with the numbers" grep -q "session glutton: .*its group reached the \
limit of 64.0 MiB (67108864 bytes), peak 64.0 MiB" /tmp/err
verdict "and nothing is left" tidy $G/user/scope

# In the root group, where processes may stay beside groups.
verdict "units" build/tests/unit/cgroup
verdict "plan and peak, under groups of v2" bash tests/e2e/memory.sh
verdict "nothing is left in the root" tidy $G

[ $BAD = 0 ] && echo "vm: all passed"
sync
echo o >/proc/sysrq-trigger
sleep 10
