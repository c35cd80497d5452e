#!/usr/bin/env python3
"""tests/tools/torture.py - fault injection: fail the Nth call, for every N.

usage: torture.py SECONDS FAULTY WHO:WHAT ARGS...

Counts the calls of kind WHAT (tests/tools/faulty.c) that WHO makes in `FAULTY
ARGS...`, then runs it once per call and fails that call.  The order is random, so
that every N may be tried when SECONDS do not suffice for all.  Every run must end
by itself with 0, 1, 3 or the exit code of the run without a fault; print the full
output if it ends with 0 and an error message if not; leave no process, descriptor
or map; and crash no process.  Corrupt data (worker:message, reader:image, ...) is sent until
SECONDS are over; it may change the output, but must not crash a process.
STRADDLE_SEED repeats the same order."""
import json, mmap, os, random, re, signal, struct, subprocess, sys, tempfile, time

HANG_S = 300            # a run that takes longer hangs
MOST_RUNS = 100         # tries until the first corrupt message, on a slow machine
CRASH = re.compile(rb'killed by signal|Sanitizer|runtime error|Assertion|'
                   rb'corrupted|faulty:')


def group_is_gone(pgid):
    """Wait until no process is left: a worker's exit can take a while on a busy
    machine."""
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        try:
            os.killpg(pgid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.005)
    os.killpg(pgid, signal.SIGKILL)
    return False


def paths(value, at=''):
    """The set of key paths of a JSON value, without the values.  A device whose
    probe failed has a reason instead of limits, so its limits are left out."""
    if isinstance(value, dict) and 'found' in value:
        return {f'{at}.{k}' for k in ('kind', 'found', 'reason')} & {
            f'{at}.{k}' for k in value}
    if isinstance(value, dict):
        return {q for k, v in value.items() for q in paths(v, f'{at}.{k}')}
    if isinstance(value, list):
        return {q for i, v in enumerate(value) for q in paths(v, f'{at}[{i}]')}
    return {at}


def shape(out):
    """Text as it is; the key paths of JSON, whose values include times."""
    try:
        return paths(json.loads(out))
    except ValueError:
        return out


class Torture:
    def __init__(self, argv, fault):
        self.argv, self.fault, self.bad, self.runs = argv, fault, 0, 0
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=HANG_S,
                           capture_output=True)
        self.code, self.out = p.returncode, shape(p.stdout)
        self.corrupts = fault.endswith((':message', ':slot', ':image'))
        self.codes = (0, 1, 2, 3, 4) if self.corrupts else (0, 1, 3, self.code)
        self.file = tempfile.NamedTemporaryFile(prefix='straddle-fault.')
        self.file.truncate(8)
        self.counters = mmap.mmap(self.file.fileno(), 8)

    def run(self, n):
        """Fail the nth call; False if there is no nth."""
        self.counters[:8] = bytes(8)
        env = dict(os.environ, STRADDLE_FAULT=f'{self.fault}:{n}',
                   STRADDLE_FAULT_FILE=self.file.name)
        p = subprocess.Popen(self.argv, env=env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
        wrong = []
        try:
            out, err = p.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            wrong.append(f'hangs for {HANG_S} s')
        hits, leaks = struct.unpack('=II', self.counters[:8])
        if not group_is_gone(p.pid):
            wrong.append('leaves a process')
        if p.returncode not in self.codes:
            wrong.append(f'exit {p.returncode}')
        if p.returncode != 0 and b'straddle: ' not in err:
            wrong.append('no message')
        if CRASH.search(err):
            wrong.append('crash')
        if leaks:
            wrong.append(f'{leaks} leaks')
        if hits == 0 and p.returncode != self.code:
            wrong.append('another exit code although no call failed')
        if p.returncode == 0 and shape(out) != self.out and not self.corrupts:
            wrong.append('exit 0 with another output')
        self.runs += 1
        if wrong:
            self.bad += 1
            print(f'STRADDLE_FAULT={self.fault}:{n}: {", ".join(wrong)}')
            print('    ' + '\n    '.join(
                err.decode(errors='replace').splitlines()[:12]))
        return hits > 0

    def count(self):
        """Count the calls: doubling, then binary search."""
        lo, hi = 0, 1           # the lo-th call exists
        while self.run(hi):
            lo, hi = hi, 2 * hi
        while hi - lo > 1:
            mid = (lo + hi) // 2
            lo, hi = (mid, hi) if self.run(mid) else (lo, mid)
        return lo

    def run_all(self, seconds):
        """Fail each call once, in random order, until the time is over."""
        end = time.monotonic() + seconds
        if self.corrupts:
            return self.run_random(end)
        most, tried = self.count(), 0
        for n in random.sample(range(1, most + 1), most):
            if time.monotonic() >= end and tried > 0:
                break
            self.run(n)
            tried += 1
        print(f'{self.fault}: {tried} of {most}, {self.bad} failed')
        if most == 0:
            print('    no call of this kind: this tests nothing')
            self.bad += 1

    def run_random(self, end):
        hits = 0
        while time.monotonic() < end or (hits == 0 and self.runs < MOST_RUNS):
            hits += self.run(random.randrange(1, 10**9))
        print(f'{self.fault}: {hits} of {self.runs}, {self.bad} failed')
        if hits == 0:
            print('    no corrupt data was sent: this tests nothing')
            self.bad += 1


def main():
    seconds, faulty, fault = float(sys.argv[1]), sys.argv[2], sys.argv[3]
    seed = int(os.environ.get('STRADDLE_SEED', time.time_ns() % 10**9))
    random.seed(seed)
    print(f'STRADDLE_SEED={seed}')
    t = Torture([faulty] + sys.argv[4:], fault)
    t.run_all(seconds)
    sys.exit(t.bad > 0)


main()
