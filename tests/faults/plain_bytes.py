"""Plain text never becomes a control token: bytes without a token, bytes that are not
UTF-8, an unknown token that ends texts (as SmolLM2's), and what one note says of them."""
import json

import toy

END = "<|endoftext|>"
GONE = [0x04, 0x06, 0xc0, 0xc1, 0xff]
ALL = bytes(range(256)) + b"\xe9t\xe9 "
IDS = {"unknown": 0, "bos": 0, "eos": 0}


def write(vocab, ids, **more):
    toy.write_model("m.gguf", vocab, keys={
        "tokenizer.ggml.%s_token_id" % k: (toy.UINT32, i) for k, i in ids.items()}, **more)


def notes(got, part):
    return [line for line in got.err.split("\n") if part in line]


# SmolLM2's: the unknown token is a control token with id 0.
vocab = [(END, toy.CONTROL)] + toy.bpe_vocab(without=GONE)
write(vocab, IDS, pre="smollm", after={"a": "b", "b": END})
got = toy.straddle("tokenize", "-m", "m.gguf", "-f", "-", input=ALL)
want = [toy.token_id(vocab, toy.bpe_spelling([c])) for c in ALL if c not in GONE]
toy.equal("tokenize: bytes that have a token", got.out.split(), [str(i) for i in want])
toy.equal("tokenize: one note", len(notes(got, "note:")), 1)
toy.check("tokenize: count", "5 bytes of the text have no token" in got.err and
          "0x04" in got.err and "bytes are not UTF-8" in got.err, got)
got = toy.straddle("tokenize", "-m", "m.gguf", "-p", "caf\u00e9 a")
toy.equal("no note for UTF-8", got.err, "")

ONE = ["-m", "m.gguf", "-s", "cpu", "--temp", "0"]
with open("in", "wb") as f:
    f.write(b"\x04\xc0a")
got = toy.straddle("run", *ONE, "-f", "in", "-n", "4")
toy.equal("run: the text goes on", got.out, "b\n")
toy.equal("run: one note", len(notes(got, "no token")), 1)
with open("in", "wb") as f:
    f.write(b"\x04a\na\xff\na\n")
got = toy.straddle("run", *ONE, "--prompts", "in", "-n", "4")
toy.equal("--prompts: tokens", got.out.replace(" ", "").count('"prompt_tokens":1'), 3)
toy.equal("--prompts: one note", len(notes(got, "no token")), 1)
toy.check("--prompts: count", "2 bytes of the text have" in got.err, got)
got = toy.straddle("chat", *ONE, "-n", "4", input=b"\x06a\n")
toy.check("chat", "b" in got.out and len(notes(got, "1 byte of the text has")) == 1, got)
with open("in", "wb") as f:
    f.write(b"aba\x04" * 20)
got = toy.straddle("eval", "-m", "m.gguf", "-s", "cpu", "--ctx", "8", "--text", "in")
toy.check("eval", got.rc == 0 and len(notes(got, "20 bytes of the text have")) == 1, got)

# Why a prompt has no token.
got = toy.straddle("run", *ONE, "-p", "\x04\x06")
toy.check("nothing is left", got.rc == 2 and "none of the prompt's 2 bytes" in got.err, got)
got = toy.straddle("run", *ONE, "-p", "")
toy.check("empty, BOS is not added", got.rc == 2 and "add_bos_token" in got.err, got)
write(vocab, {}, pre="smollm", after={"a": "b"})
got = toy.straddle("run", *ONE, "-p", "")
toy.check("empty, no BOS", got.rc == 2 and "has no beginning-of" in got.err, got)

# A true unknown token of a byte-level vocabulary stands for each byte.
vocab = [("<unk>", toy.UNKNOWN)] + toy.bpe_vocab(without=GONE)
write(vocab, {"unknown": 0}, pre="gpt-2")
got = toy.straddle("tokenize", "-m", "m.gguf", "-f", "-", input=b"a\x04\x06a")
toy.equal("<unk> of BPE", got.out.split()[1:3], ["0", "0"])

# SentencePiece without byte tokens: a run of unknown characters is one <unk>, unless
# that is a control token.
for kind, want in ((toy.UNKNOWN, ["0"]), (toy.CONTROL, [])):
    vocab = [("<unk>", kind), ("<s>", toy.CONTROL), ("</s>", toy.CONTROL),
             ("\u2581", toy.NORMAL), ("a", toy.NORMAL)]
    write(vocab, {"unknown": 0})
    got = toy.straddle("tokenize", "-m", "m.gguf", "--no-bos", "-p", "a\u00e9\u00fca")
    toy.equal("SentencePiece, kind %d" % kind, got.out.split(), ["3", "4"] + want + ["4"])
    toy.equal("one note", len(notes(got, "4 bytes of the text have no token")), 1)


# U+2581 in a text: kept where it differs from a blank, else noted.
def check_mark(label, vocab, kept, **more):
    toy.write_model("m.gguf", vocab, **more)
    text = "c a\u2581b"
    got = toy.straddle("tokenize", "-m", "m.gguf", "--no-bos", "-p", text)
    back = toy.straddle("detokenize", "-m", "m.gguf", "-p", got.out.strip())
    toy.equal(label, back.out, (text if kept else "c a b") + "\n")
    toy.equal(label + ", note", len(notes(got, "U+2581")), 0 if kept else 1)


check_mark("U+2581, byte-level", toy.bpe_vocab(), True, pre="gpt-2")
check_mark("U+2581, SentencePiece", toy.spm_vocab(), False)
check_mark("U+2581, user-defined", toy.spm_vocab(["a\u2581b"], kind=toy.USER), True)

# BOS comes once, whoever writes it.
for more in ({}, {"tokenizer.ggml.add_bos_token": (toy.BOOL, True)}):
    toy.write_model("m.gguf", toy.spm_vocab(), keys=more)
    for args, want in ((("-p", "a"), 1), (("--special", "-p", "<s>a"), 1),
                       (("--special", "-p", "<s><s>a"), 2), (("-p", "<s>a"), 1),
                       (("--special", "--no-bos", "-p", "<s>a"), 1)):
        got = toy.straddle("tokenize", "-m", "m.gguf", *args)
        toy.equal("BOS %r" % (args,), got.out.split().count("1"), want)
toy.write_model("m.gguf", toy.spm_vocab(), keys={
    "tokenizer.ggml.add_bos_token": (toy.BOOL, False)})
got = toy.straddle("tokenize", "-m", "m.gguf", "--special", "-p", "<s>a")
toy.equal("BOS by the text only", got.out.split().count("1"), 1)
TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + "
            "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
            "{{ '<|im_start|>assistant\n' }}{% endif %}")
tokens = {}
for bos in ("", "{{ bos_token }}"):
    for add in (False, True):
        toy.write_model("m.gguf", toy.spm_vocab(["<|im_start|>", "<|im_end|>"]), bos=1,
                        template=bos + TEMPLATE, after={"a": "b"},
                        keys={"tokenizer.ggml.add_bos_token": (toy.BOOL, add)})
        got = toy.straddle("run", *ONE, "--chat", "-p", "a", "-n", "1", "--json")
        tokens[bos, add] = json.loads(got.out)["prompt_tokens"] if got.rc == 0 else got
none = tokens.pop(("", False))
for who, n in tokens.items():
    toy.equal("one BOS by template %r and file %r" % who, n, none + 1)
toy.end()
