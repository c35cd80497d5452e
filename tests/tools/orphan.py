#!/usr/bin/env python3
"""tests/tools/orphan.py - a worker that cannot act ends with its coordinator.

usage: orphan.py PROGRAM ARGS...

Starts the program, waits for text, stops one worker with SIGSTOP, kills the
coordinator with SIGKILL and waits for every worker.  A worker that runs sees
the closed channel and leaves; the stopped one can only be ended by the kernel.

This process adopts the workers.  It is of their session, so the kernel does not
see an orphaned process group, to which it would send SIGHUP and SIGCONT."""
import ctypes
import os
import signal
import subprocess
import sys
import time

LIMIT_S = 300           # only if the test fails
PR_SET_CHILD_SUBREAPER = 36


def workers(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        out = subprocess.run(["pgrep", "-P", str(pid)], text=True,
                             stdout=subprocess.PIPE)
        return [int(p) for p in out.stdout.split()]


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, preexec_fn=os.setpgrp)
    if not p.stdout.read(8):
        sys.exit("orphan: no text")
    left = workers(p.pid)
    stopped = left[0]
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    end = time.monotonic() + LIMIT_S
    signals = {}
    while left and time.monotonic() < end:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.01)
            continue
        left = [x for x in left if x != pid]
        if os.WIFSIGNALED(status):
            signals[pid] = os.WTERMSIG(status)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if left:
        sys.exit("orphan: %d of the workers outlived the coordinator"
                 % len(left))
    if signals.get(stopped) != signal.SIGKILL:
        sys.exit("orphan: the stopped worker ended by signal %s, not SIGKILL"
                 % signals.get(stopped))


main()
