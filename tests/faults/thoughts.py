"""A model's thoughts are told apart from its answer: hidden, shown or in JSON by themselves; a
template's switch turns them off."""
import json
import toy

NAMES = ["<|im_start|>", "<|im_end|>"]
TURNS = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
         "<|im_start|>")
# The letters of an answer, one after the other.
WORDS = {"a": "<think>", "<think>": "h", "h": "m", "m": "</think>", "</think>": "X", "X": "Y",
         "Y": "<|im_end|>"}
RUN = ("-m", "m.gguf", "-s", "cpu", "--temp", "0", "-n", "20")


def model(template, think=toy.USER, after=WORDS):
    toy.write_model("m.gguf", toy.spm_vocab(NAMES + [("<think>", think), ("</think>", think)]),
                    eos="<|im_end|>", template=template, after=after)


def run(*args, ask="hi"):
    got = toy.straddle("run", *RUN, "--chat", "-p", ask, *args)
    toy.check("exit code", got.rc == 0, got)
    return got


# Markers as control tokens, and as tokens of the user's.
for kind in (toy.USER, toy.CONTROL):
    model(TURNS + "a", kind)
    got = run()
    toy.equal("hidden", got.out, "XY\n")
    toy.check("and it says so", "4 of the tokens are the model's thoughts" in got.err, got.err)
    toy.equal("shown", run("-q", "--thinking", "show").out, "<think>\nhm\n</think>\n\nXY\n")
    got = json.loads(run("-q", "--json").out)
    toy.equal("apart", (got["text"], got["thoughts"]), ("XY", "hm"))

open("p.txt", "w").write("hi\nho\n")
got = toy.straddle("run", *RUN, "-q", "--chat", "--prompts", "p.txt", "--parallel", "2")
toy.equal("--prompts", [(o["text"], o["thoughts"]) for o in map(json.loads, got.out.splitlines())],
          [("XY", "hm")] * 2)

# The prompt begins the thoughts; -n ends the answer within them.
model(TURNS + "<think>")
toy.equal("begun by the prompt", run("-q").out, "XY\n")
toy.equal("cut", run("-q", "-n", "1", "--thinking", "show").out, "<think>\nh\n</think>\n\n\n")
toy.equal("cut and hidden", run("-q", "-n", "1").out, "\n")

# A prompt that is no conversation has no thoughts.
got = toy.straddle("run", *RUN, "-q", "-p", "a")
toy.check("no --chat", got.out.startswith("<think>hm</think>XY"), got)

# An answer that goes on behind its begin, within thoughts or behind them.
model(TURNS + "a")
for begun, text, thoughts in (("<think>h", "<think>hXY", "m"), ("X", "XY", None)):
    got = json.loads(run("-q", "--json", "--prefill", begun).out)
    toy.equal("--prefill %s" % begun, (got["text"], got.get("thoughts")), (text, thoughts))
toy.equal("--prefill, as text", run("-q", "--prefill", "X").out, "XY\n")
toy.equal("an empty one", run("-q", "--prefill", "").out, "XY\n")
got = toy.straddle("run", *RUN, "-p", "a", "--prefill", "X")
toy.check("--prefill without --chat", got.rc == 2 and "only valid with --chat" in got.err, got)

# The switch.
model(TURNS + "{{ 'h' if enable_thinking is false else '<think>' }}",
      after=dict(WORDS, h="X"))
got = run("--thinking", "off")
toy.equal("off", got.out, "XY\n")
toy.check("off: what it did", "is told enable_thinking = false" in got.err, got.err)
got = run("--thinking", "off", "--template-arg", "enable_thinking=true")
toy.check("off: --template-arg counts", "is told" not in got.err, got.err)
model(TURNS + "<think>")
got = run("--thinking", "off")
toy.check("off: there is no switch", "has no switch for it" in got.err, got.err)
model(TURNS + "X", after={"X": "Y", "Y": "<|im_end|>"})
got = toy.straddle("run", *RUN, "--chat", "-p", "hi", "--thinking", "never")
toy.check("refused", got.rc == 2 and "show, hide or off" in got.err, got)
toy.end()
