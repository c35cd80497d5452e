"""tests/faults/cpu_quota.py - a group with less CPU time than cores: as many threads by
default as the quota pays for, and a note; given threads are kept, with another note."""
import json
import os

import toy

if len(os.sched_getaffinity(0)) < 2:
    toy.skip("needs two cores")
vocab = toy.spm_vocab()
toy.write_model("m.gguf", vocab, bos=1, eos=2)
if json.loads(toy.straddle("devices", "--json").out)["machine"]["cpu_quota"] is not None:
    toy.skip("this process has a CPU quota already")
first, second = sorted(os.sched_getaffinity(0))[:2]


def threads(group, *specs):
    """The threads of the sessions in a plan, and its notes."""
    sessions = [word for spec in specs for word in ("-s", spec)]
    got = toy.straddle("plan", "--json", "-m", "m.gguf", *sessions,
                       preexec_fn=group.enter())
    toy.check("the plan succeeds", got.rc == 0, got)
    return [s["threads"] for s in json.loads(got.out)["sessions"]], got.err


with toy.Group("cpu") as outer, toy.Group("cpu", outer) as g:
    def limit(group, us):
        if group.v1:
            group.write("cpu.cfs_quota_us", us)
        else:
            group.write("cpu.max", "%s 100000" % ("max" if us < 0 else us))

    n = len(os.sched_getaffinity(0))
    toy.equal("no quota: a thread per core, no note", threads(g, "cpu,cap=64MiB"), ([n], ""))
    limit(g, 50000)
    got, err = threads(g, "cpu,cap=64MiB")
    toy.equal("half a core: one thread", got, [1])
    toy.check("a note says why", "1 thread for %d cores, because the CPU quota pays for 0.5"
              % n in err, err)
    got, err = threads(g, "cpu,cap=64MiB,threads=2")
    toy.equal("given threads are kept", got, [2])
    toy.check("a note says that they exceed the quota", "2 threads exceed the CPU quota"
              in err, err)
    toy.equal("sessions on the same cores take turns", threads(
        g, "cpu,cap=64MiB", "cpu,cap=64MiB")[0], [1, 1])
    got = toy.straddle("devices", preexec_fn=g.enter())
    toy.check("devices shows the quota", "CPU quota, cores       0.5" in got.out, got)
    got = toy.straddle("devices", "--json", preexec_fn=g.enter())
    toy.equal("and in JSON", [json.loads(got.out)["machine"][k] for k in (
        "cpu_quota", "default_threads")], [0.5, 1])
    limit(g, -1)
    limit(outer, 100000)
    toy.equal("a group above", threads(g, "cpu,cap=64MiB")[0], [1])
    limit(outer, 200000)
    spec = "cpu,cap=64MiB,cores=%d"
    toy.equal("two cores: a thread for each of two", threads(
        g, "cpu,cap=64MiB,cores=%d,%d" % (first, second)), ([2], ""))
    toy.equal("sessions on cores of their own share it", threads(
        g, spec % first, spec % second), ([1, 1], ""))
    got = toy.straddle("run", "-m", "m.gguf", "-p", "a", "-n", "1", "-q", "-s",
                       "cpu,cap=64MiB", preexec_fn=g.enter())
    toy.check("a run works", got.rc == 0, got)
toy.end()
