#!/usr/bin/env python3
"""tests/tools/hexagon_counts.py - count instructions in loops of Hexagon kernels.

usage: hexagon_counts.py [--domain build/hexagon-domain] [--objdump llvm-objdump-14] [--loops]

Disassembles a domain and prints, for the loop with the most multiply-adds of each
kernel, its packets, HVX instructions and multiply-adds of 8 bits (vrmpy: 128),
16 bits (vdmpy: 64) or 31 bits (a pair vmpye, vmpyo: 32).  The peak is one such
instruction per packet ("of 1"); v66 and v67 issue two if the operands are in
registers ("of 2").  For row kernels it prints packets and HVX instructions.  A packet
takes a cycle if it does not stall; the numbers leave out memory.

--loops prints every loop with vector instructions.  Exits with 1 if a kernel is below
the floor, with 77 without the disassembler or the domain.
"""
import argparse, os, re, shutil, subprocess, sys

# The printed name, and the symbol with the loop.
MATRICES = [("%s, %s" % (name, rows), "%s_%s" % (fn, sym))
            for name, sym in (("Q4_0", "q4_0"), ("Q4_1", "q4_1"), ("Q5_0", "q5_0"),
                              ("Q5_1", "q5_1"), ("Q8_0", "q8_0"),
                              ("IQ4_NL", "iq4_nl"), ("MXFP4", "mxfp4"),
                              ("Q4_K", "q4_k"), ("Q6_K", "q6_k"))
            for fn, rows in (("one", "1 row"), ("many", "4 rows"))]
PRODUCTS = MATRICES + [
    ("F32, 1 row", "one_f32"), ("F32, 4 rows", "many_f32"),
    ("attention, q * k", "scores"), ("attention, p * v", "add_values")]
# Row kernels: the printed name, the symbol, and the number of its largest loops that
# together process 32 elements (0 = the whole function, which has no loop).
ROWS = [("add", "hx_add", 1), ("scale", "hx_scale", 1), ("softcap", "hx_softcap", 1),
        ("rms_norm", "rms_norm_row", 2), ("quantize", "hx_quantize_row", 1),
        ("swiglu", "glu_row_swiglu", 1), ("geglu", "glu_row_geglu", 1),
        ("swiglu_oai", "glu_row_oai", 1),
        ("attention, softmax of 64 keys", "softmax", 0)]

# Products per packet below which a loop is broken: it is no longer pipelined, or an
# accumulator is in memory.
FLOOR = 0.35

WORK = {"vrmpy": 128, "vdmpy": 64}


def packets(text):
    """The packets of a function: (address, [instructions], is the loop's last)."""
    out, cur = [], None
    for line in text.splitlines():
        m = re.match(r"\s*([0-9a-f]+):\s*(.*)", line)
        if not m:
            continue
        addr, s = int(m.group(1), 16), m.group(2).strip()
        if cur is None and s.startswith("<unknown>"):
            out.append((addr, ["unknown"], False))
            continue
        if s.startswith("{"):
            cur = (addr, [])
            s = s[1:].strip()
        if cur is None:
            continue
        end = "}" in s
        tail = s[s.index("}"):] if end else ""
        s = s.split("}")[0].strip()
        if s and s != "nop" and not s.startswith("immext"):
            cur[1].append(s)
        if end:
            out.append((cur[0], cur[1], "endloop0" in tail))
            cur = None
    return out


def loops(ps):
    """The packets of each innermost loop."""
    at = {p[0]: i for i, p in enumerate(ps)}
    found, start = [], None
    for i, (addr, ins, ends) in enumerate(ps):
        if ends and start in at:
            found.append((at[start], i))
        for s in ins:
            m = re.search(r"loop0\(0x([0-9a-f]+)", s)
            if m:
                start = int(m.group(1), 16)
            m = re.search(r"jump(?::\w+)? 0x([0-9a-f]+)", s)
            if m and int(m.group(1), 16) in at and at[int(m.group(1), 16)] <= i:
                found.append((at[int(m.group(1), 16)], i))
    return [ps[a:b + 1] for a, b in sorted(set(found))
            if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in found)]


def is_vector(s):
    return re.search(r"\bv\d+(:\d+)?(\.|\b)|\bvmem|\bq\d\b", s) is not None


def measure(loop):
    ins = [s for p in loop for s in p[1]]
    vec = [s for s in ins if is_vector(s)]
    macs = sum(n for s in vec for k, n in WORK.items() if k + "(" in s)
    if macs == 0:
        macs = 32 * sum("vmpyo(" in s and "+=" in s for s in vec)
    units = sum(any(k + "(" in s for k in WORK) for s in vec) or \
        2 * sum("vmpyo(" in s and "+=" in s for s in vec)
    return len(loop), len(vec), macs, units


ap = argparse.ArgumentParser()
ap.add_argument("--domain", default="build/hexagon-domain")
ap.add_argument("--objdump", default="llvm-objdump-14")
ap.add_argument("--loops", action="store_true")
a = ap.parse_args()
if not shutil.which(a.objdump) or not os.path.exists(a.domain):
    print("%s or %s does not exist" % (a.objdump, a.domain))
    sys.exit(77)
dump = subprocess.run([a.objdump, "-d", "--no-show-raw-insn",
                       "--mattr=+v67,+hvxv67,+hvx-length128b", a.domain],
                      capture_output=True, text=True, check=True).stdout
fns = {}
for part in re.split(r"\n(?=[0-9a-f]+ <)", dump):
    m = re.match(r"[0-9a-f]+ <(\w+)>:", part)
    if m:
        ps = packets(part)
        fns.setdefault(m.group(1), []).append((ps, loops(ps)))

if a.loops:
    for name in sorted(fns):
        for _, ls in fns[name]:
            for l in ls:
                p, v, macs, _ = measure(l)
                if v:
                    print("%-20s %6x  %4d packets %4d HVX %6d multiply-adds"
                          % (name, l[0][0], p, v, macs))
    sys.exit(0)

def loops_of(sym):
    return [l for f in fns.get(sym, []) for l in f[1]]


print("%-18s %8s %5s %6s %8s %6s %6s" % ("kernel", "packets", "HVX", "m-adds",
                                         "a packet", "of 1", "of 2"))
bad = 0
for kernel, sym in PRODUCTS:
    ls = [l for l in map(measure, loops_of(sym)) if l[2]]
    if not ls:
        print("%-18s no loop with multiply-adds in %s" % (kernel, sym))
        bad = 1
        continue
    p, v, macs, units = max(ls, key=lambda l: l[2])
    low = units / p < FLOOR
    bad |= low
    print("%-18s %8d %5d %6d %8.1f %5.0f%% %5.0f%%%s" % (kernel, p, v, macs,
          macs / p, 100 * units / p, 50 * units / p, "  too low" if low else ""))
print("\n%-32s %8s %5s" % ("rows: for 32 elements", "packets", "HVX"))
for kernel, sym, n in ROWS:
    if n == 0:
        ls = [measure(f[0]) for f in fns.get(sym, [])]
    else:
        ls = sorted(map(measure, loops_of(sym)))[-n:]
    if not ls:
        print("%-32s no loop in %s" % (kernel, sym))
        bad = 1
        continue
    print("%-32s %8d %5d" % (kernel, sum(l[0] for l in ls), sum(l[1] for l in ls)))
sys.exit(bad)
