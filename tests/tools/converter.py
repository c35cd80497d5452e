#!/usr/bin/env python3
"""tests/tools/converter.py - what the converter of `straddle quantize` holds.

usage: converter.py WHAT STRADDLE MODEL OUT TYPE

Starts quantize, stops the converter once it has the output, looks at its
descriptors, limits or threads in /proc, and lets it go on: OUT must be made.  Only
root can see the descriptors."""
import os, re, signal, subprocess, sys, time

TRIES = 50              # it may be done before it is stopped


def read(path):
    with open(path) as f:
        return f.read()


def folder(path):
    return os.path.dirname(path) + '/'


def limits_of(pid):
    """{"Max file size": "unlimited", ...}"""
    return dict(re.findall(r'^(Max [a-z ]+?)  +(\S+)',
                           read(f'/proc/{pid}/limits'), re.M))


def has_output(pid, out):
    """The size of the output is limited just before it is handed over."""
    if os.geteuid() == 0:
        return os.readlink(f'/proc/{pid}/fd/4').startswith(folder(out))
    return limits_of(pid)['Max file size'] != 'unlimited'


def stop_converter(p, out):
    """Its pid, once it holds the output and has stopped; None: it has ended."""
    while p.poll() is None:
        try:
            pid = read(f'/proc/{p.pid}/task/{p.pid}/children').split()[0]
            if not has_output(pid, out):
                continue
            os.kill(int(pid), signal.SIGSTOP)
            while not (state := re.search(r'State:\s*(\S)', read(
                    f'/proc/{pid}/status')).group(1)) in 'TZX':
                time.sleep(0.001)
            return pid if state == 'T' else None
        except (OSError, LookupError, AttributeError):
            continue            # none yet, or it ends
    return None


def descriptors(pid):
    """{number: (path, how it is open)}"""
    d = {}
    for fd in os.listdir(f'/proc/{pid}/fd'):
        flags = re.search(r'flags:\s*(\d+)', read(f'/proc/{pid}/fdinfo/{fd}'))
        d[int(fd)] = (os.readlink(f'/proc/{pid}/fd/{fd}'),
                      int(flags.group(1), 8) & os.O_ACCMODE)
    return d


def output_of(pid, out):
    """The output in /proc: without a name, or with a temporary one."""
    for fd, (path, how) in descriptors(pid).items():
        if how == os.O_RDWR and path.startswith(folder(out)):
            return f'/proc/{pid}/fd/{fd}'
    raise AssertionError('quantize holds no output')


def check_fds(p, pid, model, out):
    d = descriptors(pid)
    print(d)
    assert sorted(d) == [0, 1, 2, 3, 4, 5], 'others than expected'
    assert d[0] == ('/dev/null', os.O_RDONLY), 'stdin'
    assert d[1] == d[2] and d[1][0].startswith('pipe:'), 'its messages'
    assert d[3][0].startswith('socket:'), 'the channel'
    assert os.path.samefile(f'/proc/{pid}/fd/4', output_of(p.pid, out))
    assert d[5] == (model, os.O_RDONLY), 'the model'


def check_limits(p, pid, model, out):
    limits = limits_of(pid)
    print(limits)
    assert int(limits['Max file size']) == os.path.getsize(
        output_of(p.pid, out))
    # The cap and what was mapped for stacks.
    assert int(limits['Max data size']) < 256 << 20
    assert int(limits['Max address space']) < 384 << 20


def check_threads(p, pid, model, out):
    filters = r'Seccomp_filters:\s*(\d+)'
    own = re.search(filters, read('/proc/self/status'))
    tasks = os.listdir(f'/proc/{pid}/task')
    assert len(tasks) == 2, tasks
    for task in tasks:
        text = read(f'/proc/{pid}/task/{task}/status')
        print(text)
        assert re.search(r'NoNewPrivs:\s*1\n', text)
        assert re.search(r'CapPrm:\s*0+\n', text)
        assert re.search(r'Seccomp:\s*2\n', text)
        # Kernels before 5.9 do not count them.  Those of parents count.
        if own is not None:
            assert int(re.search(filters, text).group(1)) == \
                int(own.group(1)) + 2


def main():
    what, straddle, model, out, to = sys.argv[1:]
    check = {'fds': check_fds, 'limits': check_limits,
             'threads': check_threads}[what]
    for _ in range(TRIES):
        p = subprocess.Popen([straddle, 'quantize', '-q', model, out, to,
                              '--threads', '2', '--force'],
                             stdout=subprocess.DEVNULL)
        pid = stop_converter(p, out)
        if pid is not None:
            try:
                check(p, pid, model, out)
            finally:
                os.kill(int(pid), signal.SIGCONT)
        assert p.wait() == 0, p.returncode
        if pid is not None:
            return
    sys.exit('the converter was never stopped in time')


main()
