"""Thoughts in a conversation: hidden or shown, saved beside their answers, and in the context
as long as the template has them.  What stays the same is not computed again."""
import json
import re

import toy

NAMES = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
BEGIN = "<|im_start|>{{ m.role }}\n"
DROPS = ("{% for m in messages %}" + BEGIN + "{{ m.content }}<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
KEEPS = DROPS.replace("{{ m.content", "{% if m.reasoning_content %}<think>{{ m.reasoning_content"
                      " }}</think>{% endif %}{{ m.content")
WORDS = {toy.bpe_spelling([10]): "<think>", "<think>": "h", "h": "m", "m": "</think>", "</think>": "X", "X": "Y",
         "Y": "<|im_end|>"}


def chat(lines, *args):
    got = toy.straddle("chat", "-m", "m.gguf", "-s", "cpu", "--temp", "0", "-n", "20", *args,
                       input="\n".join(lines).encode() + b"\n")
    toy.check("exit code", got.rc == 0, got)
    return got


def kept(got):
    return [tuple(map(int, k)) for k in re.findall(r"conversation: (\d+) kept, (\d+) computed",
                                                   got.err)]


def begin(template):
    toy.write_model("m.gguf", toy.bpe_vocab(NAMES), pre="qwen2", eos="<|im_end|>",
                    template=template, after=WORDS)


counts = {}
for name, template in ("drops", DROPS), ("keeps", KEEPS):
    begin(template)
    got = chat(["u", "v", "/save! saved", "w"], "-v")
    toy.equal(name + ": hidden", got.out, "XY\n" * 3)
    toy.check(name + ": and it says so", "4 of the tokens are the model's thoughts" in got.err,
              got.err)
    counts[name] = kept(got)
    saved = json.load(open("saved"))
    toy.equal(name + ": saved apart", [(m["content"], m.get("reasoning_content"))
                                       for m in saved],
              [("u", None), ("XY", "hm"), ("v", None), ("XY", "hm")])
    again = chat(["/load saved", "w"], "-v")
    toy.equal(name + ": loaded", sum(kept(again)[0]), sum(counts[name][2]))
    toy.equal(name + ": shown", chat(["u"], "-q", "--thinking", "show").out,
              "<think>\nhm\n</think>\n\nXY\n")

# Where they leave, the stages keep the tokens in front of them; where they stay, the answer too.
for turn in 1, 2:
    for name, nkept in ("drops", 0), ("keeps", 4 + 2):
        before = counts[name][turn - 1]
        toy.equal("%s: kept in turn %d" % (name, turn), counts[name][turn][0],
                  sum(before) + nkept)
toy.end()
