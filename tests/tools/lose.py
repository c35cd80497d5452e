#!/usr/bin/env python3
"""tests/tools/lose.py - run a command, and do something to its workers on the way.

usage: tests/tools/lose.py FILE BYTES STEPS COMMAND...

When FILE has BYTES the STEPS are done one after the other, joined by '+':

    SIG:I[,SIG:I...]  a signal to the I-th worker, oldest first; -1: the newest
    new               wait for a worker that was not there
    mended            wait for one more recovery to be said on stderr
    sleep:MS          wait
    stop:MS           stop all of them, as Ctrl-Z does, and go on
    trace:I:MS        hold a worker as a debugger does; exit 77 if forbidden
    lie:R:head|tail   make a counter of the coordinator's ring R impossible
    lie:R:full        have it full of what was never put there
    touch:F, rm:F     a file
    held:I            print how many files and ring maps worker I holds

A shell would look too seldom on a busy machine.  Exits as the command does, and
with 99 if the command was over before the steps were done."""
import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import time

LOOK_S = 0.001
EXIT_SIGNAL = 35        # of the words behind the name in /proc/PID/stat
TOO_LATE, FORBIDDEN = 99, 77
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


def is_forked(pid):
    """A leak checker's helper is a child, too, and no worker: it is cloned
    without a signal for its end."""
    try:
        with open(f'/proc/{pid}/stat') as f:
            words = f.read().rpartition(')')[2].split()
        return int(words[EXIT_SIGNAL]) == signal.SIGCHLD
    except (FileNotFoundError, ProcessLookupError):
        return False


class Run:
    def __init__(self, argv):
        self.p = subprocess.Popen(argv)
        self.known = []
        self.mended = 0

    def give_up(self, code):
        self.p.kill()
        self.p.wait()
        sys.exit(code)

    def await_(self, what):
        while not what():
            if self.p.poll() is not None:
                sys.exit(TOO_LATE)
            time.sleep(LOOK_S)

    def workers(self):
        try:
            pid = self.p.pid
            with open(f'/proc/{pid}/task/{pid}/children') as f:
                pids = [int(w) for w in f.read().split()]
            return [w for w in pids if is_forked(w)]
        except FileNotFoundError:
            return []

    def learn(self):
        new = [w for w in self.workers() if w not in self.known]
        self.known += new
        return new

    def signal_one(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            self.give_up(TOO_LATE)

    def is_mended(self):
        with open('/proc/self/fd/2', 'rb') as f:
            n = f.read().count(b'straddle: recovered in ')
        return n > self.mended

    def trace(self, pid, seconds):
        libc, none = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
        if libc.ptrace(PTRACE_ATTACH, pid, none, none) < 0:
            self.give_up(FORBIDDEN)
        time.sleep(seconds)
        libc.ptrace(PTRACE_DETACH, pid, none, none)

    def tell_held(self, pid):
        """Descriptors and rings; a confined worker tells only root."""
        try:
            with open(f'/proc/{pid}/maps') as f:
                rings = f.read().count('memfd:straddle-ring')
            print('held:', len(os.listdir(f'/proc/{pid}/fd')), rings,
                  file=sys.stderr, flush=True)
        except PermissionError:
            self.give_up(FORBIDDEN)

    def lie(self, ring, word):
        """As its writer would, if it were spoilt."""
        folder = f'/proc/{self.p.pid}/fd'
        for fd in os.listdir(folder):
            path = f'{folder}/{fd}'
            if f'straddle-ring{ring} ' in os.readlink(path):
                break
        else:
            self.give_up(f'lose.py: there is no ring {ring}')
        with open(path, 'r+b') as f, mmap.mmap(f.fileno(), 4096) as m:
            nslots, = struct.unpack_from('=I', m, 8)
            head, = struct.unpack_from('=I', m, 64)
            tail, = struct.unpack_from('=I', m, 128)
            at, n = {'head': (64, head + 1000000),
                     'tail': (128, tail + 1000000),
                     'full': (128, head - nslots)}[word]
            struct.pack_into('=I', m, at, n % 2**32)

    def step(self, name, *args):
        if name == 'new':
            self.await_(self.learn)
        elif name == 'mended':
            self.await_(self.is_mended)
            self.mended += 1
            self.known = self.workers()
        elif name == 'sleep':
            time.sleep(int(args[0]) / 1000)
        elif name == 'stop':
            all_ = [self.p.pid] + self.workers()
            for pid in all_:
                self.signal_one(pid, signal.SIGSTOP)
            time.sleep(int(args[0]) / 1000)
            for pid in reversed(all_):
                self.signal_one(pid, signal.SIGCONT)
        elif name == 'trace':
            self.trace(self.known[int(args[0])], int(args[1]) / 1000)
        elif name == 'lie':
            self.lie(*args)
        elif name == 'held':
            self.tell_held(self.known[int(args[0])])
        elif name == 'touch':
            os.utime(args[0])
        elif name == 'rm':
            os.unlink(args[0])
        else:
            self.give_up(f'lose.py: there is no step {name}')

    def pick(self, i):
        if i >= 0:
            if i >= len(self.known):
                self.await_(lambda: len(self.workers()) > i)
                self.known = self.workers()
            return self.known[i]
        self.await_(self.workers)
        return (self.workers() or self.known)[-1]

    def steps(self, text):
        for step in text.split('+'):
            if step[0].isdigit():
                for one in step.split(','):
                    number, i = one.split(':')
                    self.signal_one(self.pick(int(i)), int(number))
            else:
                self.step(*step.split(':'))


def main():
    path, nbytes, steps, *argv = sys.argv[1:]
    run = Run(argv)
    run.await_(lambda: os.path.exists(path) and
               os.path.getsize(path) >= int(nbytes))
    run.await_(run.learn)
    run.steps(steps)
    sys.exit(run.p.wait())


main()
