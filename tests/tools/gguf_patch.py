#!/usr/bin/env python3
"""tests/tools/gguf_patch.py - copy a model file and put faults into the copy.

usage: gguf_patch.py IN OUT FAULT...

Each fault overwrites bytes in place, so that no other field moves:
  magic=N  version=N  tensors=N  keys=N   fields of the header
  key:KEY=VALUE       a number, or a string of the same length
  keytype:KEY=N       the type of a value
  keylen:KEY=N        the length of a string, the count of an array
  keyname:KEY=NAME    another name of the same length
  name:TENSOR=NAME    another name of the same length
  type:TENSOR=N  offset:TENSOR=N  ndims:TENSOR=N
  dim0:TENSOR=N  dim1:TENSOR=N
  cut=N               keep only the first N bytes
Without faults it prints the offset where the header ends.
"""
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
CODES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f",
         7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9


class Model:
    """The position of each field, found by parsing the header."""

    def __init__(self, data):
        self.data, self.pos = data, 24
        self.at = {"magic": (0, "<I"), "version": (4, "<I"),
                   "tensors": (8, "<Q"), "keys": (16, "<Q")}
        ntensors, nkeys = struct.unpack_from("<QQ", data, 8)
        for _ in range(nkeys):
            self.key()
        for _ in range(ntensors):
            self.tensor()

    def take(self, code):
        v = struct.unpack_from(code, self.data, self.pos)[0]
        self.pos += struct.calcsize(code)
        return v

    def text(self):
        n = self.take("<Q")
        self.pos += n
        return self.data[self.pos - n:self.pos].decode()

    def key(self):
        start = self.pos + 8
        name = self.text()
        self.at["keyname:" + name] = (start, len(name))
        self.at["keytype:" + name] = (self.pos, "<I")
        kind = self.take("<I")
        if kind == STRING:
            self.at["keylen:" + name] = (self.pos, "<Q")
            start = self.pos + 8
            self.at["key:" + name] = (start, len(self.text()))
        elif kind == ARRAY:
            kind = self.take("<I")
            self.at["keylen:" + name] = (self.pos, "<Q")
            for _ in range(self.take("<Q")):
                if kind == STRING:
                    self.text()
                else:
                    self.pos += SIZES[kind]
        else:
            self.at["key:" + name] = (self.pos, CODES[kind])
            self.pos += SIZES[kind]

    def tensor(self):
        start = self.pos + 8
        name = self.text()
        self.at["name:" + name] = (start, len(name))
        self.at["ndims:" + name] = (self.pos, "<I")
        for d in range(self.take("<I")):
            self.at[f"dim{d}:{name}"] = (self.pos, "<Q")
            self.pos += 8
        self.at["type:" + name] = (self.pos, "<I")
        self.at["offset:" + name] = (self.pos + 4, "<Q")
        self.pos += 12

    def set(self, field, value):
        pos, code = self.at[field]
        if isinstance(code, int):
            text = value.encode()
            assert len(text) == code, f"{field} has {code} bytes"
            self.data[pos:pos + code] = text
        else:
            v = float(value) if code in ("<f", "<d") else int(value, 0)
            struct.pack_into(code, self.data, pos, v)


def main():
    with open(sys.argv[1], "rb") as fp:
        m = Model(bytearray(fp.read()))
    for fault in sys.argv[3:]:
        field, value = fault.split("=", 1) if "=" in fault else (fault, "0")
        if field == "cut":
            del m.data[int(value):]
        else:
            m.set(field, value)
    with open(sys.argv[2], "wb") as fp:
        fp.write(m.data)
    if len(sys.argv) == 3:
        print(m.pos)


main()
