"""Texts end at --stop, and never within a character."""
import json
import toy

RUN = ("-q", "-m", "m.gguf", "-s", "cpu", "--temp", "0")
CIRCLE = {"a": "b", "b": "c", "c": "d", "d": "a"}
NAMES = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}<|im_start|>a")


def run(*args, n=9):
    return toy.straddle("run", *RUN, "-p", "a", "-n", n, *args)


def stops(*texts):
    return [w for t in texts for w in ("--stop", t)]


toy.write_model("m.gguf", toy.spm_vocab(), bos=1, eos=2, after=CIRCLE)
for texts, want, why in ((["da"], "bc", "stop"), (["b"], "", "stop"), (["cdab"], "b", "stop"),
                         (["cdx"], "bcdabcdab", "length"), (["abx", "x"], "bcdabcdab", "length"),
                         (["dab", "ab"], "bc", "stop"), (["d", "bcd"], "", "stop")):
    toy.equal("text, %s" % texts, run(*stops(*texts)).out, want + "\n")
    got = json.loads(run("--json", *stops(*texts)).out)
    toy.equal("JSON, %s" % texts, (got["text"], got["stop"]), (want, why))
toy.equal("held back to the end", run("--stop", "dx", n=3).out, "bcd\n")

open("p.txt", "w").write("a\nc\nb\n")
for parallel in (1, 3):
    got = toy.straddle("run", *RUN, "--prompts", "p.txt", "--parallel", parallel, "-n", 9, "--stop",
                       "cd")
    toy.equal("--prompts", [(o["text"], o["stop"]) for o in map(json.loads, got.out.splitlines())],
              [("b", "stop"), ("dab", "stop"), ("", "stop")])

# Split and batched otherwise: the same bytes.
for more in (["--batch", "1"], ["-s", "cpu", "--half-layers"]):
    toy.equal("the same with %s" % more, run("--stop", "cda", *more).out, "b\n")

# Refused.
for text, words in (("", "empty"), ("x" * 257, "at most 256"), (b"\xff", "not UTF-8"),
                    (b"a\xe2\x82", "not UTF-8")):
    got = run("--stop", text) if isinstance(text, str) else toy.straddle(
        "run", *RUN, "-p", "a", "--stop", text.decode("utf8", "surrogateescape"))
    toy.check("%r is refused" % (text[:9],), got.rc == 2 and words in got.err, got)
got = run(*stops(*["x"] * 17))
toy.check("too many", got.rc == 2 and "at most 16" in got.err, got)
toy.equal("many", run(*stops(*["x" * 256] * 15, "d")).out, "bc\n")

# A control token that is named ends the answer, although it has no text.
toy.write_model("m.gguf", toy.spm_vocab(["<|x|>"]), bos=1, eos=2,
                after={"a": "b", "b": "<|x|>", "<|x|>": "a"})
got = json.loads(run("--json", "--stop", "<|x|>").out)
toy.equal("a control token", (got["text"], got["stop"]), ("b", "stop"))

# chat: the next turn follows what was shown.
toy.write_model("m.gguf", toy.spm_vocab(NAMES), template=TEMPLATE, after=CIRCLE)
got = toy.straddle("chat", *RUN, "-n", "9", "--stop", "da", input=b"x\ny\n/save s.json\n")
toy.equal("chat", got.out, "bc\nbc\n")
toy.equal("/save", [m["content"] for m in json.load(open("s.json"))], ["x", "bc", "y", "bc"])

# A template whose markers are no tokens: they end an answer as text.
vocab = toy.spm_vocab()
toy.write_model("m.gguf", vocab, template=TEMPLATE.replace("<|im_end|>", "<END>"), after={
    "a": "H", "H": "<", "<": "E", "E": "N", "N": "D", "D": ">", ">": "H"})
got = json.loads(run("--json", "--chat", n=30).out)
toy.equal("a marker as text", (got["text"], got["stop"]), ("H", "eos"))

# Characters: three bytes of the euro sign, again and again.
EURO = {"a": "<0xE2>", "<0xE2>": "<0x82>", "<0x82>": "<0xAC>", "<0xAC>": "<0xE2>"}
toy.write_model("m.gguf", vocab, bos=1, eos=2, after=EURO)
for n in range(1, 8):
    whole, cut = n // 3 * "\u20ac", "\ufffd" * (n % 3 > 0)
    toy.equal("%d bytes, text" % n, run(n=n).raw, (whole + "\n").encode())
    toy.equal("%d bytes, JSON" % n, json.loads(run("--json", n=n).out)["text"], whole + cut)
    got = toy.straddle("run", *RUN, "--prompts", "-", "-n", n, input=b"a\n")
    toy.equal("%d bytes, --prompts" % n, json.loads(got.out)["text"], whole + cut)
    got = toy.straddle("chat", *RUN, "-n", n, input=b"a\n/save s%d.json\n" % n)
    toy.equal("%d bytes, chat" % n, got.raw, (whole + "\n").encode())
    toy.equal("%d bytes, /save" % n, json.load(open("s%d.json" % n))[1]["content"], whole + cut)
toy.equal("a character before a stop text", run("--stop", "\u20ac", n=4).raw, b"\n")
toy.end()
