"""tests/faults/program_replaced.py - an upgrade replaces or removes the program's file
while it runs, and then a worker is lost: the next worker is the program that runs."""
import os
import shutil
import signal
import subprocess
import time

import toy

vocab = toy.spm_vocab()
toy.write_model("m.gguf", vocab, after={"a": "a"}, bos=1, eos=2, ctx=60000)


def until(condition):
    end = time.monotonic() + toy.LIMIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_reader(pid):
    with open("/proc/%d/cmdline" % pid, "rb") as f:
        return b"reader" in f.read()


def workers(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(k) for k in f.read().split() if not is_reader(int(k))]


def has(path, text):
    with open(path) as f:
        return text in f.read()


def replaced():
    with open("new", "w") as f:		# not even a program
        f.write("another version\n")
    os.chmod("new", 0o755)
    os.rename("new", "folder/program")


def removed():
    shutil.rmtree("folder")


def lose_a_worker(label, change, launch=None):
    shutil.rmtree("folder", True)
    os.mkdir("folder")
    shutil.copy(toy.BIN, "folder/program")
    env = dict(os.environ, **({"STRADDLE_LAUNCH": launch} if launch else {}))
    with open("err", "w") as err, open("out", "w") as out:
        p = subprocess.Popen(
            ["folder/program", "run", "-m", "m.gguf", "-s", "2*cpu,cap=256MiB", "-p", "a",
             "-n", "-1", "--ignore-eos", "--ctx", "60000", "--temp", "0"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
    toy.check(label + ": text comes", until(lambda: os.path.getsize("out") > 8))
    change()
    os.kill(workers(p.pid)[0], signal.SIGKILL)
    toy.check(label + ": the run recovers",
              until(lambda: p.poll() is not None or has("err", "straddle: recovered in")) and
              p.poll() is None, open("err").read())
    size = os.path.getsize("out")
    toy.check(label + ": and goes on", until(lambda: p.poll() is not None or
                                             os.path.getsize("out") > size))
    p.terminate()
    p.wait()
    toy.check(label + ": no worker fails to start", not has("err", "could not be started"),
              open("err").read())


lose_a_worker("replaced", replaced)
lose_a_worker("removed with its folder", removed)
lose_a_worker("replaced, with a launcher", replaced, "nice -n 0")
toy.end()
