"""tests/faults/ulimits.py - small limits of a process: the message names the ulimit that
helps."""
import resource
import subprocess

import toy

if toy.is_sanitized():
    toy.skip("a sanitizer's memory is in no plan")
vocab = toy.spm_vocab()
toy.write_model("m.gguf", vocab, bos=1, eos=2)
run = "run", "-m", "m.gguf", "-p", "a", "-n", "1", "-q", "-s", "2*cpu,cap=64MiB,threads=2"


def limited(which, n):
    return toy.straddle(*run, preexec_fn=lambda: resource.setrlimit(which, (n, n)))


for n in (4, 6, 8):
    got = limited(resource.RLIMIT_NOFILE, n)
    toy.check("%d files: ulimit -n is named, once" % n,
              got.rc == 1 and got.err.count("`ulimit -n`") == 1, got)
got = limited(resource.RLIMIT_NOFILE, 64)
toy.check("64 files are enough", got.rc == 0, got)
may_raise = subprocess.run(["sh", "-c", "ulimit -s 64; ulimit -s 600"],
                           stderr=subprocess.DEVNULL).returncode == 0
got = limited(resource.RLIMIT_STACK, 64 << 10)
toy.check("a stack of 64 KiB: raised, or ulimit -s is named", got.rc == 0 if may_raise else
          got.rc == 1 and "stack is limited to 64 KiB" in got.err and "`ulimit -s`" in got.err,
          got)
got = toy.straddle(*run, preexec_fn=lambda: resource.setrlimit(
    resource.RLIMIT_STACK, (64 << 10, 8 << 20)))
toy.check("a stack of 64 KiB that may be raised is", got.rc == 0, got)
got = toy.straddle("plan", "-m", "m.gguf", "-s", "cpu,cap=8GiB", "--json",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
toy.check("a cap above the address space is lowered, and ulimit -v is named",
          got.rc == 0 and "(ulimit -v)" in got.err, got)
toy.end()
