"""tests/faults/group_limit.py - a group with little memory, in which this user may or may
not make others: caps are within what it has left, a plan beyond it is refused, and a worker
that its limit kills is not restarted."""
import json
import os
import subprocess

import toy

if os.getuid() != 0:
    toy.skip("needs root, to limit a group and to become another user")
if toy.is_sanitized():
    toy.skip("a sanitizer's memory is in no plan")
vocab = toy.spm_vocab()
toy.write_model("m.gguf", vocab, bos=1, eos=2, ctx=1 << 20)
shared = "--ctx", "1000000", "-p", "a", "-n", "1", "-q", "-m", "m.gguf"
LIMIT = 64 << 20


def caps(group, user, *specs):
    sessions = [word for spec in specs for word in ("-s", spec)]
    got = toy.straddle("plan", "--json", "-m", "m.gguf", *sessions,
                       preexec_fn=group.enter(user))
    toy.check("the plan succeeds", got.rc == 0, got)
    plan = json.loads(got.out)
    toy.check("it names the group", group.folder in plan["machine"]["free_by"],
              plan["machine"])
    return [s["cap"] for s in plan["sessions"]], got.err


with toy.Group("memory") as outer, toy.Group("memory", outer) as g:
    limit = "memory.limit_in_bytes" if g.v1 else "memory.max"

    def check(label, user, low):
        """low: the group that has the limit."""
        enter = g.enter(user)
        got, err = caps(g, user, "cpu") if low is g else ([0], "")
        toy.check(label + ": a cap that is not given is what the group has left",
                  sum(got) <= LIMIT, got)
        if low is g:
            got, err = caps(g, user, "cpu,cap=1GiB")
            toy.check(label + ": a given one is lowered to that", sum(got) <= LIMIT, got)
            toy.check(label + ": and a note says so", "cap 1.00 GiB lowered to" in err, err)
        got, err = [], ""
        for spec in "cpu", "cpu,cap=1GiB", "2*cpu,cap=1GiB":
            got = toy.straddle("run", "-s", spec, *shared, preexec_fn=enter)
            toy.check("%s: %s: a plan beyond it is refused" % (label, spec),
                      got.rc == 3 and "bytes short" in got.err and
                      low.folder in got.err and "--overcommit" in got.err, got)
        got = toy.straddle("plan", "-s", "cpu,cap=1GiB", "--ctx", "1000000", "-m", "m.gguf",
                           "--for-another-machine", preexec_fn=enter)
        toy.check(label + ": it can be planned for another machine",
                  got.rc == 0 and "machine: another one" in got.out, got)
        # While the memory of a killed worker is not free yet, the kernel may kill the
        # coordinator, too.
        for _ in range(10):
            got = toy.straddle("run", "-s", "cpu,cap=1GiB", "--overcommit", *shared,
                               preexec_fn=enter)
            if got.rc != -9:
                break
        toy.check(label + ": overcommitted, the group ends the run, and is named",
                  got.rc == 1 and "for memory: the memory group %s (%s 64.0 MiB) is full" %
                  (low.folder, limit) in got.err, got)
        toy.check(label + ": without a restart", "restarting" not in got.err, got)
        got = toy.straddle("run", "-s", "2*cpu", "-p", "a", "-n", "1", "-m", "m.gguf", "-q",
                           "--ctx", "1000", preexec_fn=enter)
        toy.check(label + ": what fits runs", got.rc == 0, got)

    g.write(limit, LIMIT)
    check("root", None, g)
    check("a plain user", 65534, g)
    outer.write(limit, LIMIT)
    g.write(limit, -1 if g.v1 else "max")
    check("a plain user, the group above", 65534, outer)
    # A read-only mount, as containers have it.
    line = "mount -o remount,bind,ro %s && exec \"$@\"" % (
        "/sys/fs/cgroup/memory" if g.v1 else "/sys/fs/cgroup")
    args = ["unshare", "-m", "sh", "-c", line, "-", toy.BIN, "plan", "--json", "-s", "cpu",
            "-m", "m.gguf"]
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       preexec_fn=g.enter(), timeout=toy.LIMIT_S)
    if p.returncode == 0:
        toy.check("root with a read-only mount",
                  json.loads(p.stdout)["sessions"][0]["cap"] <= LIMIT, p.stdout)
    else:
        print("not tried: a read-only mount: %s" % p.stderr.decode("utf8", "replace"))
toy.end()
