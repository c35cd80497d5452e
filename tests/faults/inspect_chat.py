#!/usr/bin/env python3
"""inspect says what chat needs: the form, the template's hash, the tokens that end an
answer; the whole template with -v."""
import json

import toy

CHATML = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
          "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
          "{% endif %}")
ODD = "{% frobnicate %}\x1b[2J"
vocab = toy.spm_vocab(["<|im_start|>", "<|im_end|>"])
END = toy.token_id(vocab, "<|im_end|>")


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 % 2 ** 64
    return "%016x" % h


def inspect(template):
    toy.write_model("m.gguf", vocab, bos=1, eos=2, template=template)
    return (toy.straddle("inspect", "m.gguf").out,
            toy.straddle("inspect", "-v", "m.gguf").out,
            json.loads(toy.straddle("inspect", "--json", "m.gguf").out)["chat"])


text, long, o = inspect(CHATML)
toy.check("the form is named", "\nchat: ChatML\n" in text and o["form"] == "ChatML", (text, o))
toy.check("the template has a size and a hash", "%d bytes, hash %s\n" % (
    len(CHATML), fnv(CHATML.encode())) in text and
    o["template_hash"] == fnv(CHATML.encode()), (text, o))
toy.check("the ends are listed", '2 "</s>"' in text and '%d "<|im_end|>"' % END in text and
          {"id": END, "text": "<|im_end|>"} in o["ends"], (text, o))
toy.check("the whole template comes with -v", all(
    "    %s\n" % line in long for line in CHATML.splitlines()) and
    "    %s\n" % CHATML.splitlines()[1] not in text, long)
toy.check("all of it is followed", "not followed" not in text and o["not_followed"] is None,
          (text, o))

text, long, o = inspect(ODD)
toy.check("what is not followed is said", "not followed: " in text and o["not_followed"] and
          o["template_hash"] == fnv(ODD.encode()), (text, o))
toy.check("the template's controls are escaped", "\x1b" not in long and
          "\\x1b[2J" in long, long)

text, long, o = inspect(None)
toy.check("without a template: plain lines, and why", "\nchat: plain lines\n"
          "  the file has no chat template\n" in text and
          o["template_hash"] is None and "template:" not in text, (text, o))

toy.write_model("m.gguf", vocab, without=["tokenizer.ggml.model"])
got = toy.straddle("inspect", "--json", "m.gguf")
toy.check("without a vocabulary: null", got.rc == 0 and
          json.loads(got.out)["chat"] is None, got)
toy.check("without a vocabulary: not a line", "\nchat" not in
          toy.straddle("inspect", "m.gguf").out)
toy.end()
