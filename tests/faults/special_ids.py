"""Ids of special tokens that name no token: said once, then as if the key were missing."""
import toy

vocab = toy.spm_vocab()
ROUND = {"a": "b", "b": "c", "c": "a"}


def check_runs(label, keys, text="bcab\n"):
    toy.write_model("m.gguf", vocab, bos=1, eos=2, after=ROUND,
                    keys={"tokenizer.ggml." + k: v for k, v in keys.items()})
    got = toy.straddle("run", "-m", "m.gguf", "-s", "cpu", "-p", "a", "-n", "4",
                       "--temp", "0")
    toy.check(label + ": text", got.out == text, got)
    notes = [line for line in got.err.split("\n") if "as if" in line]
    toy.check(label + ": one note", len(notes) == 1, got)
    for key in keys:
        toy.check("%s: the note names %s" % (label, key), key in "".join(notes), got)


BAD = ((toy.UINT32, len(vocab)), (toy.UINT32, 2 ** 32 - 1), (toy.INT32, -1),
       (toy.UINT64, 2 ** 63 + 5), (toy.FLOAT32, 2.0), (toy.STRING, "</s>"),
       (toy.ARRAY, (toy.UINT32, [2])))
for value in BAD:
    check_runs("eos %r" % (value,), {"eos_token_id": value})
for name in ("bos", "unknown", "eot", "eom", "padding", "seperator", "mask", "cls",
             "fim_pre", "fim_pad"):
    check_runs(name, {name + "_token_id": (toy.UINT32, 2 ** 32 - 1)})
check_runs("two", {"bos_token_id": (toy.INT32, -1), "eos_token_id": (toy.UINT32, 32000)})
check_runs("add_bos_token of a wrong type", {"add_bos_token": (toy.STRING, "true")})

# A list of further tokens that end an answer: each that is a token counts.
C = toy.token_id(vocab, "c")
for vtype, ids, note in ((toy.INT32, [2, C], ()), (toy.UINT32, [C], ()), (toy.INT64, [C, -1], ("-1",)),
                         (toy.INT32, [-1, C, -2], ("-1",)),
                         (toy.INT32, [C] + [2] * 16, ("a list of more than 16",)),
                         (toy.INT32, [C, len(vocab)], (str(len(vocab)),)),
                         (toy.INT32, [], ())):
    toy.write_model("m.gguf", vocab, bos=1, eos=2, after=ROUND, keys={
        "tokenizer.ggml.eos_token_ids": (toy.ARRAY, (vtype, ids))})
    got = toy.straddle("run", "-m", "m.gguf", "-s", "cpu", "-p", "a", "-n", "4", "--temp", "0")
    toy.check("eos_token_ids %s" % ids, got.out == ("b\n" if ids else "bcab\n") and
              all("eos_token_ids is " + n in got.err for n in note) and
              ("as if" in got.err) == bool(note), got)
check_runs("eos_token_ids of texts", {"eos_token_ids": (toy.ARRAY, (toy.STRING, ["c"]))})
check_runs("eos_token_ids is no list", {"eos_token_ids": (toy.UINT32, C)})

# 0 and 1 of any integer type are no and yes; 2 is neither.
for vtype, v, bos in ((toy.UINT8, 0, 0), (toy.INT32, 0, 0), (toy.UINT64, 1, 1), (toy.BOOL, 0, 0)):
    toy.write_model("m.gguf", vocab, bos=1, eos=2, keys={
        "tokenizer.ggml.add_bos_token": (vtype, v)})
    got = toy.straddle("tokenize", "-m", "m.gguf", "-p", "a")
    toy.check("add_bos_token %d of type %d" % (v, vtype), got.out.split().count("1") == bos and
              got.err == "", got)
check_runs("add_bos_token is 2", {"add_bos_token": (toy.UINT8, 2)})

# Any integer type will do.
toy.write_model("m.gguf", vocab, after=ROUND, keys={
    "tokenizer.ggml.eos_token_id": (toy.INT64, toy.token_id(vocab, "c"))})
got = toy.straddle("run", "-m", "m.gguf", "-s", "cpu", "-p", "a", "-n", "4", "--temp", "0")
toy.check("eos as a signed number", got.out == "b\n" and "as if" not in got.err, got)
toy.end()
