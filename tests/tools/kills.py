#!/usr/bin/env python3
"""tests/tools/kills.py - lose a thousand workers; no result may change by a bit.

usage: KILLS=1000 tests/tools/kills.py [build/straddle]

Generates the same texts repeatedly and kills workers at random moments, some of
them during a recovery, until KILLS workers are lost.  Every run must end with the
text and the logits of an undisturbed run.  At the end it prints the times from a
loss to the first batch after it.  STRADDLE_SEED=N repeats the same moments."""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = sys.argv[1] if len(sys.argv) > 1 else 'build/straddle'
KILLS = int(os.environ.get('KILLS', 1000))
SEED = int(os.environ.get('STRADDLE_SEED', 0)) or random.randrange(1 << 32)
LIMIT_S = 600           # for one run

COMMON = ['run', '-m', os.path.join(TESTS, 'data/kjv-q8_0.gguf'),
          '--ignore-eos', '--temp', '0.8', '--seed', '7',
          '--recover', '1000000'] + [w for n in 'abc' for w in
                                     ('-s', f'{n}=cpu,threads=1')]
PROMPTS = ['In the beginning', 'And it came to pass', 'Blessed are the',
           'The LORD is my', 'And the king said unto', 'Behold',
           'Now these are the names of', 'Then answered', 'Woe unto']


def run(args, rng):
    """Run once, with kills drawn from rng (None: undisturbed).  Returns the exit
    code, stdout and hash, and stderr."""
    with tempfile.TemporaryFile('w+b') as out, \
            tempfile.TemporaryFile('w+b') as err:
        p = subprocess.Popen([BIN] + args, stdin=subprocess.DEVNULL,
                             stdout=out, stderr=err)
        end = time.monotonic() + LIMIT_S
        try:
            while rng and p.poll() is None and time.monotonic() < end:
                kill_one(p, rng)
                if rng.random() < 0.75:
                    await_progress(p, out, end)
            p.wait(max(1, end - time.monotonic()))
        finally:
            p.kill()
        out.seek(0)
        err.seek(0)
        messages = err.read().decode()
        hash_ = re.findall(r'hash of the last logits: (\w+)', messages)
        return (p.returncode, out.read(), hash_), messages


def await_progress(p, out, end):
    """Wait for more output.  Without it, kills can come faster than recoveries,
    and the growing back-off between restarts dominates the run."""
    before = os.fstat(out.fileno()).st_size
    while (p.poll() is None and time.monotonic() < end and
           os.fstat(out.fileno()).st_size == before):
        time.sleep(0.002)


def is_reader(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as f:
            return b'reader' in f.read()
    except OSError:
        return True                 # it has ended


def kill_one(p, rng):
    """Kill a random worker, perhaps one that was only just started."""
    time.sleep(rng.uniform(0, 0.1))
    try:
        with open(f'/proc/{p.pid}/task/{p.pid}/children') as f:
            workers = [int(w) for w in f.read().split()
                       if not is_reader(w)]
        if workers:
            os.kill(rng.choice(workers), rng.choice(
                [signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV]))
    except (FileNotFoundError, ProcessLookupError):
        pass                    # the run or the worker has ended


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def main():
    rng = random.Random(SEED)
    print(f'STRADDLE_SEED={SEED}', flush=True)
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        f.write('\n'.join(PROMPTS) + '\n')
        f.flush()
        ways = [COMMON + ['-p', 'In the beginning', '-n', '900'],
                COMMON + ['--prompts', f.name, '--parallel', '3', '-n', '100',
                          '-q']]
        want = [run(w, None)[0] for w in ways]
        if any(w[0] != 0 for w in want):
            sys.exit('kills: an undisturbed run failed')
        losses, runs, times = 0, 0, []
        while losses < KILLS:
            way = runs % len(ways)
            got, messages = run(ways[way], rng)
            runs += 1
            losses += len(re.findall(r'restarting it|starting it again',
                                     messages))
            times += [float(t) for t in
                      re.findall(r'recovered in ([0-9.]+) s', messages)]
            if got != want[way]:
                print(messages)
                sys.exit(f'kills: run {runs} has another result: exit {got[0]}, '
                         f'{len(got[1])} bytes of {len(want[way][1])}, '
                         f'hash {got[2]} instead of {want[way][2]}')
            print(f'\r{losses} lost in {runs} runs', end='', flush=True)
    print(f'\nkills: {losses} workers lost in {runs} runs, each with the text '
          f'and the logits of an undisturbed run')
    print(f'recovered {len(times)} times: p50 {quantile(times, .5):.3f} s, '
          f'p99 {quantile(times, .99):.3f} s, longest {max(times):.3f} s')


main()
