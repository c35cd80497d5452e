#!/usr/bin/env python3
"""tests/check_includes.py - who may include whom.

Checks that
  - every include of a header of ours is allowed by tests/includes.allow,
  - there is no circle between the rows of that table, and none between files
    but those that the table names,
  - each header compiles alone.

usage: CC=gcc tests/check_includes.py
"""
import fnmatch
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FOLDERS = 'config shm kernels layers worker coordinator tests'.split()
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"', re.M)
TABLE = 'tests/includes.allow'


def sources():
    for top in FOLDERS:
        for folder, _, names in os.walk(top):
            for name in names:
                if name.endswith(('.c', '.h')):
                    yield os.path.join(folder, name)


def read_table():
    """Rows (pattern, [allowed patterns]) in order, and the circles of files
    that are one idea, each a set of names without .c and .h."""
    rows, circles = [], []
    for line in open(TABLE):
        words = line.split('#')[0].split()
        if not words:
            continue
        if words[0] == 'circle':
            circles.append(set(words[1:]))
        else:
            rows.append((words[0], words[1:]))
    return rows, circles


def strongly_connected(edges):
    """Groups of more than one node that reach each other (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                found.append(set(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def compiles_alone(header):
    done = subprocess.run(
        [*os.environ.get('CC', 'gcc').split(), '-std=gnu11', '-D_GNU_SOURCE',
         '-Wall', '-Wextra', '-Werror', '-I.', '-fsyntax-only', '-x', 'c', '-'],
        input=f'#include "{header}"\n', text=True, stderr=subprocess.PIPE)
    return '' if done.returncode == 0 else \
        f'{header} does not compile alone:\n{done.stderr}'


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    sys.setrecursionlimit(10000)
    rows, circles = read_table()
    files = sorted(sources())
    text = {f: open(f).read() for f in files}
    bad, between_rows, between_files = [], {}, {}

    def row_of(path):
        return next((r for r in rows if fnmatch.fnmatchcase(path, r[0])), None)

    for f in files:
        row = row_of(f)
        if row is None:
            bad.append(f'{f}: no row of {TABLE} is for it')
            continue
        for name in INCLUDE.findall(text[f]):
            near = os.path.join(os.path.dirname(f), name)
            path = near if os.path.isfile(near) else name
            if not os.path.isfile(path):
                bad.append(f'{f} includes {name}: no such file')
                continue
            same = os.path.dirname(f) == os.path.dirname(path)
            other = row_of(path)
            if not same and not any(fnmatch.fnmatchcase(path, p)
                                    for p in row[1]):
                bad.append(f'{f} may not include {path} ({TABLE})')
            if other is not None and other is not row:
                between_rows.setdefault(row[0], set()).add(other[0])
            if f[:-2] != path[:-2]:
                between_files.setdefault(f[:-2], set()).add(path[:-2])

    for group in strongly_connected(between_rows):
        bad.append('a circle between folders: ' + ' '.join(sorted(group)))
    found = strongly_connected(between_files)
    for group in found:
        if group not in circles:
            bad.append('a circle of files: ' + ' '.join(sorted(group)))
    for group in circles:
        if group not in found:
            bad.append(f'{TABLE} allows a circle that is gone: ' +
                       ' '.join(sorted(group)))

    # Headers of HVX vectors are for Hexagon's compiler only.
    alone = [f for f in files
             if f.endswith('.h') and 'hexagon_types.h' not in text[f]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bad += [e for e in pool.map(compiles_alone, alone) if e]
    print('\n'.join(bad), end='\n' if bad else '')
    return 1 if bad else 0


sys.exit(main())
