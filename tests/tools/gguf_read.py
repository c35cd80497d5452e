#!/usr/bin/env python3
"""tests/tools/gguf_read.py - compare a file from `straddle quantize` with its source.

usage: gguf_read.py OLD NEW FILE_TYPE TYPE [TENSOR LIMIT]

An independent reader, written from the GGUF specification alone.  NEW must have the
metadata of OLD in the same order, except for the two keys of quantization, and the
same tensors in the same order, aligned and within the file.  Its matrices must have
one of the TYPEs (separated by commas).  With TENSOR, of about 10,000 weights at most,
it decodes that tensor from both files and prints the relative RMS error, which must
not exceed LIMIT.
"""
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B",
           10: "Q", 11: "q", 12: "d"}
# Type number: name, elements and bytes of a block.
TYPES = {0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18),
         3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
         8: ("Q8_0", 32, 34), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
         14: ("Q6_K", 256, 210), 20: ("IQ4_NL", 32, 18), 30: ("BF16", 1, 2),
         39: ("MXFP4", 32, 17)}
NL = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)


class File:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.pos = 4
        assert self.data[:4] == b"GGUF", path
        assert self.take("I") in (2, 3), path
        ntensors, nkeys = self.take("Q"), self.take("Q")
        self.keys = [(self.text(), self.value(self.take("I")))
                     for _ in range(nkeys)]
        self.tensors = [self.tensor() for _ in range(ntensors)]
        self.align = dict(self.keys).get("general.alignment", 32)
        self.start = -(-self.pos // self.align) * self.align
        assert not any(self.data[self.pos:self.start]), "padding"

    def take(self, code):
        v = struct.unpack_from("<" + code, self.data, self.pos)[0]
        self.pos += struct.calcsize("<" + code)
        return v

    def text(self):
        n = self.take("Q")
        self.pos += n
        return bytes(self.data[self.pos - n:self.pos]).decode("latin-1")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, n = self.take("I"), self.take("Q")
            return [self.value(of) for _ in range(n)]
        return self.take(SCALARS[kind])

    def tensor(self):
        name, ndims = self.text(), self.take("I")
        ne = [self.take("Q") for _ in range(ndims)]
        return name, ne, self.take("I"), self.take("Q")

    def nbytes(self, t):
        _, block, size = TYPES[t[2]]
        n = 1
        for d in t[1]:
            n *= d
        assert t[1][0] % block == 0, t
        return n // block * size

    def weights(self, name):
        t = next(t for t in self.tensors if t[0] == name)
        kind, block, size = TYPES[t[2]]
        at, out = self.start + t[3], []
        for b in range(at, at + self.nbytes(t), size):
            out += decode(kind, self.data[b:b + size])
        return out


def half(b, at):
    return struct.unpack_from("<e", b, at)[0]


def k_scales(s):
    """The 8 scales and 8 offsets of Q4_K and Q5_K, of 6 bits each, in 12 bytes."""
    low = [(s[j] & 63, s[j + 4] & 63) for j in range(4)]
    return low + [(s[j + 8] & 15 | s[j] >> 6 << 4,
                   s[j + 8] >> 4 | s[j + 4] >> 6 << 4) for j in range(4)]


def decode(kind, b):
    def nibbles(at):
        return [v & 15 for v in b[at:at + 16]] + [v >> 4 for v in b[at:at + 16]]

    def fifth(at):
        bits = int.from_bytes(b[at:at + 4], "little")
        return [(bits >> j & 1) << 4 for j in range(32)]

    if kind == "F32":
        return list(struct.unpack("<f", b))
    if kind == "F16":
        return [half(b, 0)]
    if kind == "BF16":
        return list(struct.unpack("<f", b"\0\0" + b))
    if kind == "MXFP4":
        return [2.0 ** (b[0] - 127) * E2M1[q] for q in nibbles(1)]
    if kind == "Q8_0":
        return [half(b, 0) * q for q in struct.unpack_from("32b", b, 2)]
    if kind == "Q4_0":
        return [half(b, 0) * (q - 8) for q in nibbles(2)]
    if kind == "IQ4_NL":
        return [half(b, 0) * NL[q] for q in nibbles(2)]
    if kind == "Q4_1":
        return [half(b, 0) * q + half(b, 2) for q in nibbles(4)]
    if kind == "Q5_0":
        return [half(b, 0) * ((q | h) - 16)
                for q, h in zip(nibbles(6), fifth(2))]
    if kind == "Q5_1":
        return [half(b, 0) * (q | h) + half(b, 2)
                for q, h in zip(nibbles(8), fifth(4))]
    out = []
    if kind in ("Q4_K", "Q5_K"):
        low = 16 if kind == "Q4_K" else 48
        for i in range(256):
            q = b[low + i // 64 * 32 + i % 32] >> 4 * (i // 32 % 2) & 15
            if kind == "Q5_K":
                q |= (b[16 + i % 32] >> i // 32 & 1) << 4
            scale, least = k_scales(b[4:16])[i // 32]
            out.append(half(b, 0) * scale * q - half(b, 2) * least)
        return out
    assert kind == "Q6_K"
    for i in range(256):
        part, j = i // 128, i % 128
        q = b[64 * part + j % 64] >> 4 * (j // 64) & 15
        q |= (b[128 + 32 * part + j % 32] >> 2 * (j // 32) & 3) << 4
        scale = struct.unpack_from("b", b, 192 + i // 16)[0]
        out.append(half(b, 208) * scale * (q - 32))
    return out


def main(old, new, file_type, types, tensor=None, limit=None):
    old, new = File(old), File(new)
    ours = ("general.quantization_version", "general.file_type")
    dropped = ("split.no", "split.count", "split.tensors.count") + ours
    # repr(), because a NaN does not equal itself.
    assert ([repr(kv) for kv in old.keys if kv[0] not in dropped] ==
            [repr(kv) for kv in new.keys if kv[0] not in ours]), "metadata"
    assert dict(new.keys)["general.quantization_version"] == 2
    assert dict(new.keys)["general.file_type"] == int(file_type)
    end = 0
    # The first part of a split model has only the first tensors.
    assert len(old.tensors) == len(new.tensors) or \
        "split.count" in dict(old.keys)
    for i, t in enumerate(new.tensors):
        was = old.tensors[i] if i < len(old.tensors) else t
        assert t[:2] == was[:2], (t, was)
        assert t[3] == end and end % new.align == 0, t
        end = -(-(end + new.nbytes(t)) // new.align) * new.align
        if len(t[1]) < 2 or "norm" in t[0] or "ffn_gate_inp" in t[0]:
            assert t[2] == was[2], (t, was)
        else:
            assert TYPES[t[2]][0] in types.split(","), t
    assert len(new.data) == new.start + end, "size"
    if tensor is not None:
        x, y = old.weights(tensor), new.weights(tensor)
        error = (sum((a - b) ** 2 for a, b in zip(x, y)) /
                 sum(a * a for a in x)) ** 0.5
        assert len(x) == len(y) and error <= float(limit), error
        print("%.5f" % error)


main(*sys.argv[1:])
