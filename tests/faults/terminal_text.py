#!/usr/bin/env python3
"""Text of a model, a file or an argument must not control the terminal: every string of
a file holds escape sequences, and no command may pass them on as they are."""
import json
import os
import pty
import subprocess

import toy

EVIL = ("\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "\u202egnp", "\u2028", "\x7f", "\r",
        "\x08", "\x00", "\n")
RAW = "".join(EVIL)


def obeyed(data):
    """The first character of data that a terminal obeys, but for newlines and tabs."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        return "byte %d is not UTF-8" % e.start
    for c in text:
        o = ord(c)
        if c in "\n\t":
            continue
        if (o < 32 or 127 <= o < 160 or o in (0x61c, 0x200e, 0x200f) or
                0x2028 <= o <= 0x202e or 0x2066 <= o <= 0x2069):
            return "U+%04X in %r" % (o, text)
    return None


def harmless(label, *args, rc=None, **options):
    got = toy.straddle(*args, **options)
    found = obeyed(got.raw) or obeyed(got.err_raw)
    toy.check(label + " prints no raw control", found is None, found)
    if rc is not None:
        toy.equal(label + ": exit code", got.rc, rc)
    return got


def on_terminal(*args):
    """The bytes that a terminal gets on stdout."""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([toy.BIN] + list(args), stdin=subprocess.DEVNULL, stdout=theirs,
                         stderr=subprocess.DEVNULL)
    os.close(theirs)
    data = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:		# the other end is closed
            break
        if not more:
            break
        data += more
    os.close(ours)
    p.wait(timeout=toy.LIMIT_S)
    return data.replace(b"\r\n", b"\n")		# the terminal's own


vocab = toy.spm_vocab([("x" + c, toy.NORMAL) for c in EVIL if c != "\0"] +
                      [("<|im_start|>" + RAW, toy.CONTROL)])
CAP = ("-s", "cpu,cap=64MiB")


def model(after=None, **options):
    """Every token is followed by EOS, unless `after` says otherwise."""
    toy.write_model("m.gguf", vocab, bos=1, eos=2,
                    after=after or {i: 2 for i in range(len(vocab))}, **options)


# --- every string that a command reads, one at a time ---
STRINGS = ["general.architecture", "general.name", "tokenizer.ggml.model",
           "tokenizer.ggml.pre", "tokenizer.chat_template", "llama.rope.scaling.type",
           "unknown.key", "split.count"]
for key in STRINGS:
    model(keys={key: (toy.STRING, RAW)})
    for args in (("inspect",), ("inspect", "-v"), ("inspect", "--json"),
                 ("tokenize", "--pieces", "-p", "ab"), ("plan",), ("explain",),
                 ("run", "-p", "a", "-n", "2"), ("run", "--chat", "-p", "a", "-n", "2"),
                 ("chat",), ("eval", "--ids", "5 6")):
        args = list(args)
        if args[0] == "inspect":
            args.append("m.gguf")
        else:
            args[1:1] = ["-m", "m.gguf"]
        if args[0] not in ("inspect", "tokenize"):
            args += CAP
        harmless("%s with %s" % (" ".join(args), key), *args, input=b"hi\n")
    harmless("quantize with %s" % key, "quantize", "m.gguf", "q.gguf", "Q8_0")
    if os.path.exists("q.gguf"):
        os.unlink("q.gguf")

# --- names of keys and tensors are refused, and their message is harmless ---
model(keys={"evil" + RAW: (toy.UINT32, 1)})
harmless("inspect, a key's name", "inspect", "m.gguf", rc=4)
model(tensors=[("evil\x1b[2J", [64], toy.F32, bytes(256))])
harmless("inspect, a tensor's name", "inspect", "m.gguf", rc=4)

# --- arguments, paths and configs ---
model()
name = "m" + RAW.replace("\0", "").replace("/", "") + ".gguf"
os.rename("m.gguf", name)
harmless("inspect, a path", "inspect", name, rc=0)
harmless("quantize, a path", "quantize", name, name + ".q", "Q8_0", rc=0)
harmless("run, a path that does not exist", "run", "-m", name + "x", "-p", "a")
harmless("run, an option", "run", "--" + RAW.replace("\0", ""), rc=2)
harmless("help, a topic", "help", RAW.replace("\0", ""), rc=2)
with open("c.conf", "w") as f:
    f.write("nonsense%s = 1\n" % RAW.replace("\0", "").replace("\n", ""))
harmless("plan, a config", "plan", "-c", "c.conf", rc=2)
got = harmless("plan --check, a path", "plan", "--check", "-m", name, *CAP, rc=0)
with open("again.conf", "w") as f:
    f.write(got.out)
got = toy.straddle("plan", "--check", "-c", "again.conf")
toy.check("what plan --check prints parses again", got.rc == 0 and
          got.out == open("again.conf").read(), got)
os.rename(name, "m.gguf")

# --- JSON has the exact text, without a raw control ---
model(keys={"general.name": (toy.STRING, RAW)})
got = harmless("inspect --json", "inspect", "--json", "m.gguf", rc=0)
toy.equal("inspect --json has the exact value",
          json.loads(got.out)["metadata"]["general.name"], RAW)

# --- the pieces of a text, and the text that a model writes ---
for c in EVIL:
    if c != "\0":
        harmless("tokenize --pieces %r" % c, "tokenize", "-m", "m.gguf", "--pieces",
                 "-p", "x" + c, rc=0)
chain = {}
before = "a"
for c in EVIL:
    if c != "\0":
        chain[before] = before = "x" + c
chain[before] = toy.token_id(vocab, "<0x1B>")
chain[toy.token_id(vocab, "<0x1B>")] = toy.token_id(vocab, "<0xC2>")
chain[toy.token_id(vocab, "<0xC2>")] = toy.token_id(vocab, "<0x9B>")
chain[toy.token_id(vocab, "<0x9B>")] = toy.token_id(vocab, "<0xFF>")
chain[toy.token_id(vocab, "<0xFF>")] = "b"
chain["b"] = 2
model(after=chain)
want = "".join("x" + c for c in EVIL if c != "\0").encode() + b"\x1b\xc2\x9b"
run = ("run", "-q", "-m", "m.gguf", *CAP, "-p", "a", "-n", "40", "--temp", "0")
got = toy.straddle(*run)
toy.check("a pipe gets the model's exact bytes", got.raw.startswith(want) and
          got.raw.endswith(b"b\n"), got)
data = on_terminal(*run)
toy.check("a terminal gets text without controls", obeyed(data) is None and
          b"\\x1b]0;owned\\x07" in data and b"x\n" in data, data)
data = on_terminal("run", "--json", *run[1:])
toy.check("a terminal gets JSON without controls", obeyed(data) is None and
          json.loads(data)["text"].startswith("x\x1b]0;owned\x07"), data)
data = on_terminal("detokenize", "-m", "m.gguf", "-p",
                   " ".join(str(toy.token_id(vocab, "x" + c)) for c in EVIL if c != "\0"))
toy.check("detokenize on a terminal", obeyed(data) is None and b"\\x1b[2J" in data, data)

toy.end()
