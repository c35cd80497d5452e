#!/usr/bin/env python3
"""Parts that a model does not need may be odd: the file runs, inspect shows it,
quantize copies it.  A model that needs it refuses it by name."""
import json
import struct

import toy

vocab = toy.spm_vocab()
CAP = ("-s", "cpu,cap=64MiB")
AFTER = {"a": "b", "b": "c", "c": "a"}


def runs(label, path):
    got = toy.straddle("run", "-m", path, *CAP, "-p", "a", "-n", "4", "--temp", "0")
    toy.check(label + " runs", got.rc == 0 and got.out == "bcab\n", got)
    return got


def sound(label, note=None, **options):
    """The model runs, and a copy of it has the same oddity."""
    toy.write_model("m.gguf", vocab, bos=1, eos=2, after=AFTER, **options)
    got = runs(label, "m.gguf")
    if note:
        toy.check(label + " is noted", note in got.err, got)
    got = toy.straddle("inspect", "--json", "m.gguf")
    if not toy.check(label + ": inspect", got.rc == 0, got):
        return
    got = toy.straddle("quantize", "-q", "m.gguf", "q.gguf", "Q8_0", "--force")
    if not toy.check(label + ": quantize", got.rc == 0, got):
        return
    runs(label + ", quantized,", "q.gguf")
    now = json.loads(toy.straddle("inspect", "--json", "q.gguf").out)
    for key in options.get("keys", {}):
        if key == "general.file_type":		# says what quantize made
            continue
        vtype, v = options["keys"][key]
        item = toy.string(key) + struct.pack("<I", vtype) + toy.value(vtype, v)
        toy.check("%s: %s is copied exactly" % (label, key),
                  item in open("q.gguf", "rb").read(), item)
    for name, shape, ttype, _ in options.get("tensors", ()):
        t = [t for t in now["tensors"] if t["name"] == name][0]
        toy.equal("%s: the copy's shape of %s" % (label, name), t["shape"], shape)


for shape in ([0], [4, 0], [0, 5, 1, 2], [0, 2 ** 62], [2 ** 62, 0]):
    sound("a tensor of shape %s" % shape, note="feature.flag",
          tensors=[("feature.flag", shape, toy.F32, b"")])
sound("an empty tensor of a block type", tensors=[("empty.weight", [0, 3], 12, b"")],
      note="empty.weight")
sound("an empty tensor of an unknown type", tensors=[("empty.weight", [0], 99, b"")],
      note="empty.weight")
sound("a tensor without dimensions", tensors=[("scalar", [], toy.F32, toy.f32([1.0]))],
      note="scalar")
sound("a tensor of an unknown type", note="new.weight",
      tensors=[("new.weight", [64], 99, bytes(range(64))), ("last", [1], toy.F32, bytes(4))])
toy.check("its bytes are copied", bytes(range(64)) in open("q.gguf", "rb").read())
sound("a last tensor of an unknown type", note="new.weight",
      tensors=[("new.weight", [2 ** 60], 99, bytes(range(200, 255)))])
toy.check("its bytes are copied, too", bytes(range(200, 255)) in
          open("q.gguf", "rb").read())
got = toy.straddle("quantize", "m.gguf", "q.gguf", "Q8_0", "--force")
toy.check("quantize notes it", "unknown type" in got.err and "new.weight" in got.err, got)
sound("a name in UTF-8", note="\u91cd\u307f.weight",
      tensors=[("\u91cd\u307f.weight", [32, 2], toy.F32, bytes(256))])
sound("a key in UTF-8", keys={"general.na\u00efve": (toy.UINT32, 7)})
sound("nested arrays", keys={"extra.nested": (toy.ARRAY, (toy.ARRAY, [
    (toy.UINT16, [1, 2]), (toy.STRING, ["a", ""]),
    (toy.ARRAY, [(toy.FLOAT64, []), (toy.BOOL, [True])])]))})
sound("odd values of keys that nobody reads", keys={
    "extra.empty": (toy.ARRAY, (toy.STRING, [])), "extra.none": (toy.ARRAY, (toy.INT8, [])),
    "extra.text": (toy.STRING, b"\xff\0\x1b"), "extra.u64": (toy.UINT64, 2 ** 64 - 1),
    "extra.flags": (toy.ARRAY, (toy.BOOL, [True, False])),
    "general.file_type": (toy.STRING, "none"), "general.tags": (toy.UINT8, 1)})
sound("numbers of another type", keys={
    "llama.attention.layer_norm_rms_epsilon": (toy.FLOAT64, 1e-5),
    "llama.rope.freq_base": (toy.UINT32, 10000),
    "llama.block_count": (toy.INT64, 1)})

# --- lists of the vocabulary: of another type, empty or missing ---
KINDS, SCORES = "tokenizer.ggml.token_type", "tokenizer.ggml.scores"
kinds = [k for _, k in vocab]
ids = {}
for label, options in (
        ("as usual", {}),
        ("types as u32", {"keys": {KINDS: (toy.ARRAY, (toy.UINT32, kinds))}}),
        ("types as i64", {"keys": {KINDS: (toy.ARRAY, (toy.INT64, kinds))}}),
        ("types as u8", {"keys": {KINDS: (toy.ARRAY, (toy.UINT8, kinds))}})):
    sound(label, **options)
    ids[label] = toy.straddle("tokenize", "-m", "m.gguf", "--special", "-p", "a</s>\n").out
    toy.equal(label + ": the same tokens", ids[label], ids["as usual"])
for label, options in (
        ("no scores", {"without": [SCORES], "note": SCORES}),
        ("empty scores", {"keys": {SCORES: (toy.ARRAY, (toy.FLOAT32, []))}, "note": SCORES}),
        ("no types", {"without": [KINDS]}),
        ("empty types", {"keys": {KINDS: (toy.ARRAY, (toy.INT32, []))}})):
    sound(label, **options)
pair = [(t, k) for t, k in vocab] + [("ab", toy.NORMAL), ("abc", toy.NORMAL)]
toy.write_model("m.gguf", pair, without=[SCORES])
got = toy.straddle("tokenize", "-m", "m.gguf", "--no-bos", "-p", "abc")
toy.equal("without scores tokens still merge", got.out.split()[-1],
          str(toy.token_id(pair, "abc")))
for values in ([7] + kinds[1:], [-1] + kinds[1:], kinds[1:]):
    toy.write_model("m.gguf", vocab, keys={KINDS: (toy.ARRAY, (toy.INT64, values))})
    got = toy.straddle("tokenize", "-m", "m.gguf", "-p", "a")
    toy.check("types that are none are refused", got.rc == 4 and "type" in got.err, got)

# --- 0 of a scaling is none ---
for key in ("rope.scaling.factor", "rope.scale_linear", "rope.scaling.original_context_length"):
    zero = (toy.UINT32, 0) if key.endswith("length") else (toy.FLOAT32, 0.0)
    sound("%s of 0" % key, keys={"llama." + key: zero})
    sound("%s of 0, YaRN" % key, keys={"llama." + key: zero,
                                       "llama.rope.scaling.type": (toy.STRING, "yarn")})

# --- numbers in the JSON of inspect ---
NUMBERS = {"u64": (toy.UINT64, 2 ** 64 - 1), "u63": (toy.UINT64, 2 ** 63),
           "i64": (toy.INT64, -2 ** 63), "max": (toy.INT64, 2 ** 63 - 1),
           "third": (toy.FLOAT64, 1 / 3), "tiny": (toy.FLOAT64, 5e-324),
           "large": (toy.FLOAT64, 1.7976931348623157e308), "one": (toy.FLOAT32, 1.0),
           "f32": (toy.FLOAT32, 0.1), "eps": (toy.FLOAT32, 1e-5),
           "nan": (toy.FLOAT32, float("nan")), "inf": (toy.FLOAT64, float("inf")),
           "-inf": (toy.FLOAT32, -float("inf"))}
toy.write_model("m.gguf", vocab, keys={"x." + k: v for k, v in NUMBERS.items()},
                tensors=[("empty", [0, 2 ** 63], toy.F32, b"")])
got = toy.straddle("inspect", "--json", "m.gguf")
meta = json.loads(got.out)["metadata"]
for key, (vtype, v) in NUMBERS.items():
    want = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(key, v)
    toy.equal("inspect --json: " + key, meta.get("x." + key), want)
    toy.check("inspect --json: %s has the type of a number" % key,
              isinstance(meta.get("x." + key), type(want)), meta.get("x." + key))
toy.check("reals have the fewest digits", '"x.eps": 1e-05' in got.out and
          '"x.f32": 0.1' in got.out and "0.3333333333333333" in got.out, got.out)
toy.equal("a shape beyond 2^63", [t["shape"] for t in json.loads(got.out)["tensors"]
                                  if t["name"] == "empty"], [[0, 2 ** 63]])

# --- needed, and refused by name ---
for name, shape, ttype in (("blk.0.attn_q.bias", [0], toy.F32),
                           ("rope_freqs.weight", [32], 99)):
    toy.write_model("m.gguf", vocab, bos=1, eos=2, after=AFTER,
                    tensors=[(name, shape, ttype, bytes(128))])
    got = toy.straddle("run", "-m", "m.gguf", *CAP, "-p", "a", "-n", "4")
    toy.check("%s of shape %s, type %d, is refused" % (name, shape, ttype),
              got.rc == 4 and name in got.err, got)

toy.end()
