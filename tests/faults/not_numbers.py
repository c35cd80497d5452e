#!/usr/bin/env python3
"""NaN and infinity in weights, logits, keys and values are named wherever they pass, with
the remedy where the KV type is too narrow."""
import struct

import toy

vocab = toy.spm_vocab()
CAP = ("-s", "cpu,cap=64MiB")
NAN, INF = float("nan"), float("inf")
OPTIONS = {"bos": 1, "eos": 2, "after": {"a": "b", "b": "c", "c": "a"}}


def f64(values):
    return struct.pack("<%dd" % len(values), *values)


# --- quantize: copied and converted tensors, and scales of blocks ---
Q8 = struct.pack("<e", 0.5) + bytes(range(32))
Q4_1 = struct.pack("<ee", 0.5, NAN) + bytes(16)
F32S = [1.0] * 63
for label, tensor, at, shown in (
        ("a norm that stays F32", ("extra_norm.weight", [64], toy.F32,
                                   toy.f32(F32S + [NAN])), 63, "nan"),
        ("a norm in F16", ("extra_norm.weight", [64], toy.F16,
                           toy.f16([-INF] + F32S)), 0, "-inf"),
        ("a vector in F64", ("extra.bias", [64], 28, f64(F32S + [INF])), 63, "inf"),
        ("a scale in Q8_0, copied", ("extra.weight", [32, 2], 8, Q8 +
                                     struct.pack("<e", NAN) + bytes(32)), 32, "nan"),
        ("an infinite scale in Q8_0", ("extra.weight", [32, 2], 8, Q8 +
                                       struct.pack("<e", INF) + b"\1" * 32), 32, "inf"),
        ("a scale in MXFP4, copied", ("extra.weight", [64, 2], 39, (b"\x7f" + b"\x11" * 16) * 3 +
                                      b"\xff" + b"\x11" * 16), 96, "nan"),
        ("a min in Q4_1, converted", ("extra.weight", [32, 2], 3, Q4_1 * 2), 0, "nan"),
        ("a matrix in F16, converted", ("extra.weight", [64, 2], toy.F16, toy.f16(
            [1.0] * 127 + [NAN])), 127, "nan")):
    toy.write_model("m.gguf", vocab, tensors=[tensor], **OPTIONS)
    got = toy.straddle("quantize", "-q", "m.gguf", "q.gguf", "MXFP4" if tensor[2] == 39
                       else "Q8_0")
    toy.check("quantize refuses " + label, got.rc == 4 and
              '"%s": weight %d is ' % (tensor[0], at) in got.err and shown in got.err and
              "q.gguf" not in toy.os.listdir("."), got)
toy.write_model("m.gguf", vocab, tensors=[
    ("extra_norm.weight", [64], toy.F32, toy.f32([3e38] * 64)),
    ("extra.bias", [64], 28, f64([1e300] * 64)),
    ("extra.flags", [4], 24, b"\xff" * 4)], **OPTIONS)
got = toy.straddle("quantize", "-q", "m.gguf", "q.gguf", "Q8_0")
toy.check("quantize copies large numbers and integers", got.rc == 0, got)


# --- logits: every command that computes some ---
def changed(name, data):
    """The model with other bytes in a tensor."""
    toy.write_model("m.gguf", vocab, replace={name: data}, **OPTIONS)


COMMANDS = (("run", "-p", "a", "-n", "4", "--temp", "0"), ("run", "-p", "a", "-n", "4"),
            ("chat", "-n", "4"), ("eval", "--ids", "1 300 301", "--logits", "x.f32"),
            ("eval", "--text", "t.txt", "--ctx", "8"))
with open("t.txt", "w") as f:
    f.write("abcabcabcabcabcabc")


def refused(label, want, *options):
    for args in COMMANDS:
        got = toy.straddle(args[0], "-m", "m.gguf", *CAP, *args[1:], *options,
                           input=b"abc\n")
        toy.check("%s: %s" % (args[0], label), got.rc == 1 and "not numbers" in got.err and
                  all(w in got.err for w in want), got)
    toy.check("%s: no logits are written" % label, "x.f32" not in toy.os.listdir("."))


changed("output_norm.weight", toy.f32([NAN] * 384))
refused("weights that are NaN", ["weights"])
got = toy.straddle("run", "-m", "m.gguf", *CAP, "--prompts", "t.txt", "-n", "4")
toy.check("run --prompts says so in the line", got.rc == 1 and "not numbers" in got.out, got)

# Keys of 1e5 and values of 1e5 exceed F16.  The norm makes every element of a token's
# row sqrt(384) where the token is, so that one column of a weight reaches each token.
big = 1e5 / 384 ** 0.5
for name, what in (("blk.0.attn_k.weight", "keys"), ("blk.0.attn_v.weight", "values")):
    changed(name, toy.f16([big] * (384 * 64)))
    for more in ((), ("--kv-type-v", "f32") if what == "keys" else ("--kv-type-k", "f32")):
        got = toy.straddle("run", "-m", "m.gguf", *CAP, "-p", "abc", "-n", "3", *more,
                           "--temp", "0")
        toy.check("%s beyond F16 are named%s" % (what, more), "--kv-type f32" in got.err and
                  "cpu0" in got.err and (got.rc == 0 or "not numbers" in got.err), got)
    got = toy.straddle("run", "-m", "m.gguf", *CAP, "-p", "abc", "-n", "3", "--temp", "0",
                       "--kv-type", "f32")
    toy.check("%s in F32 are no fault" % what, got.rc == 0 and "kv-type" not in got.err and
              got.out == "abc\n", got)
changed("blk.0.attn_v.weight", toy.f16([big] * (384 * 64)))
refused("values beyond F16", ["--kv-type f32", "cpu0", "F16"])

toy.end()
