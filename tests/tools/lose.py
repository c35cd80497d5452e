#!/usr/bin/env python3
"""tests/tools/lose.py - run a command and disturb its workers.

usage: tests/tools/lose.py FILE BYTES STEPS COMMAND...

When FILE has BYTES, lose.py does the STEPS in order; they are joined by '+':

    SIG:I[,SIG:I...]      send a signal to the I-th worker, oldest first; -1: newest
    new                   wait for a new worker
    recovered             wait for one more recovery to be reported on stderr
    sleep:MS              wait
    stop:MS               stop all processes, as Ctrl-Z does, then continue them
    trace:I:MS            hold worker I as a debugger does; exit 77 if forbidden
    corrupt:R:head|tail   write an impossible counter to the coordinator's ring R
    corrupt:R:full        make ring R full of slots that were never written
    touch:F, rm:F         touch or remove a file
    patch:F               overwrite a file's last byte and set its times back
    held:I                print how many descriptors and ring maps worker I has

A shell script could not poll often enough on a busy machine.  Exits as the command
does, or with 99 if the command ended before the steps were done."""
import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import time

POLL_S = 0.001
EXIT_SIGNAL = 35        # index of the field, counted after the name in /proc/PID/stat
TOO_LATE, FORBIDDEN = 99, 77
PTRACE_ATTACH, PTRACE_DETACH = 16, 17


def is_forked(pid):
    """The child is a worker.  The reader is none, nor is a leak checker's helper,
    which is a child too, but cloned without an exit signal."""
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as f:
            if b'reader' in f.read():
                return False
        with open(f'/proc/{pid}/stat') as f:
            fields = f.read().rpartition(')')[2].split()
        return int(fields[EXIT_SIGNAL]) == signal.SIGCHLD
    except (FileNotFoundError, ProcessLookupError):
        return False


class Run:
    def __init__(self, argv):
        self.p = subprocess.Popen(argv)
        self.known = []
        self.recovered = 0

    def kill_and_exit(self, code):
        self.p.kill()
        self.p.wait()
        sys.exit(code)

    def wait_until(self, condition):
        while not condition():
            if self.p.poll() is not None:
                sys.exit(TOO_LATE)
            time.sleep(POLL_S)

    def workers(self):
        try:
            pid = self.p.pid
            with open(f'/proc/{pid}/task/{pid}/children') as f:
                pids = [int(w) for w in f.read().split()]
            return [w for w in pids if is_forked(w)]
        except FileNotFoundError:
            return []

    def find_new(self):
        new = [w for w in self.workers() if w not in self.known]
        self.known += new
        return new

    def signal_one(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            self.kill_and_exit(TOO_LATE)

    def has_recovered(self):
        with open('/proc/self/fd/2', 'rb') as f:
            n = f.read().count(b'straddle: recovered in ')
        return n > self.recovered

    def trace(self, pid, seconds):
        libc, none = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
        if libc.ptrace(PTRACE_ATTACH, pid, none, none) < 0:
            self.kill_and_exit(FORBIDDEN)
        time.sleep(seconds)
        libc.ptrace(PTRACE_DETACH, pid, none, none)

    def print_held(self, pid):
        """Print counts of descriptors and ring maps; of a confined worker only root
        may read them."""
        try:
            with open(f'/proc/{pid}/maps') as f:
                rings = f.read().count('memfd:straddle-ring')
            print('held:', len(os.listdir(f'/proc/{pid}/fd')), rings,
                  file=sys.stderr, flush=True)
        except PermissionError:
            self.kill_and_exit(FORBIDDEN)

    def corrupt(self, ring, word):
        """Write a bad counter, as a faulty writer of the ring would."""
        folder = f'/proc/{self.p.pid}/fd'
        for fd in os.listdir(folder):
            path = f'{folder}/{fd}'
            if f'straddle-ring{ring} ' in os.readlink(path):
                break
        else:
            self.kill_and_exit(f'lose.py: no such ring: {ring}')
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
            self.wait_until(self.find_new)
        elif name == 'recovered':
            self.wait_until(self.has_recovered)
            self.recovered += 1
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
        elif name == 'corrupt':
            self.corrupt(*args)
        elif name == 'held':
            self.print_held(self.known[int(args[0])])
        elif name == 'touch':
            os.utime(args[0])
        elif name == 'patch':
            was = os.stat(args[0])
            with open(args[0], 'r+b') as f:
                f.seek(-1, os.SEEK_END)
                f.write(b'\xff')
            os.utime(args[0], ns=(was.st_atime_ns, was.st_mtime_ns))
        elif name == 'rm':
            os.unlink(args[0])
        else:
            self.kill_and_exit(f'lose.py: no such step: {name}')

    def pick(self, i):
        if i >= 0:
            if i >= len(self.known):
                self.wait_until(lambda: len(self.workers()) > i)
                self.known = self.workers()
            return self.known[i]
        self.wait_until(self.workers)
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
    run.wait_until(lambda: os.path.exists(path) and
                   os.path.getsize(path) >= int(nbytes))
    run.wait_until(run.find_new)
    run.steps(steps)
    sys.exit(run.p.wait())


main()
