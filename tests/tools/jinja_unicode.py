#!/usr/bin/env python3
"""tests/tools/jinja_unicode.py - print coordinator/text/jinja/unicode_table.c.

usage: jinja_unicode.py >coordinator/text/jinja/unicode_table.c

The tables are what Python's str methods say about each character, so the
rendering of a template is Python's.  The Unicode version is that of the Python
that runs this."""
import unicodedata

LAST = 0x110000
PRINT, ALPHA, DIGIT, NUMERIC, DECIMAL, SPACE = 1, 2, 4, 8, 16, 32


def flags(c):
    return (c.isprintable() * PRINT | c.isalpha() * ALPHA |
            c.isdigit() * DIGIT | c.isnumeric() * NUMERIC |
            c.isdecimal() * DECIMAL | c.isspace() * SPACE)


def runs():
    out = []
    for i in range(LAST):
        f = flags(chr(i))
        if not out or out[-1][1] != f:
            out.append((i, f))
    return out


def ranges(function):
    """Rows of first, last, stride, delta for maps to one character, and rows
    of the others."""
    rows, long = [], []
    for i in range(LAST):
        m = function(chr(i))
        if m == chr(i):
            continue
        if len(m) > 1:
            long.append((i, [ord(x) for x in m]))
            continue
        d = ord(m) - i
        if rows and rows[-1][3] == d and rows[-1][2] in (0, i - rows[-1][1]) \
                and i - rows[-1][1] <= 2:
            rows[-1][2] = i - rows[-1][1]
            rows[-1][1] = i
        else:
            rows.append([i, i, 0, d])
    return [(a, b, s or 1, d) for a, b, s, d in rows], long


def table(kind, name, rows):
    print("\nconst struct %s %s[] = {" % (kind, name))
    line = "\t"
    for r in rows:
        if len(line) + len(r) > 72:
            print(line.rstrip())
            line = "\t"
        line += r + ", "
    print(line.rstrip())
    print("};\nconst size_t n%s = NITEMS(%s);" % (name, name))


print("""/* coordinator/text/jinja/unicode_table.c - properties and case of characters.
 * Made by tests/tools/jinja_unicode.py from Unicode %s; do not edit. */
#include "unicode.h"
""" % unicodedata.unidata_version, end="")
table("unicode_run", "unicode_runs", ["{0x%x,%d}" % r for r in runs()])
for name, function in ("upper", str.upper), ("lower", str.lower), \
        ("title", str.title):
    rows, long = ranges(function)
    table("unicode_map", "unicode_%s" % name,
          ["{0x%x,0x%x,%d,%d}" % r for r in rows])
    table("unicode_long", "unicode_%s_long" % name,
          ["{0x%x,{%s}}" % (i, ",".join("0x%x" % x for x in m))
           for i, m in long])
