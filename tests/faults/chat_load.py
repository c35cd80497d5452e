"""tests/faults/chat_load.py - a conversation that /load reads goes on with the tokens of the
one that /save wrote: also behind the space that a SentencePiece vocabulary puts in front of
an answer, which its text has not; control tokens that only the template writes; thoughts.  A
hostile file can be interrupted."""
import json
import os
import re
import subprocess
import time

import toy

SPACE = "\u2581"
TURNS = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
         "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
         "{% endif %}")
MARKS = ["<|im_start|>", "<|im_end|>"]


def tokens(result):
    """The counts of each /stats."""
    return re.findall(r"turns?, (\d+) of", result.err)


def chat(lines):
    got = toy.straddle("chat", "-q", "-m", "m.gguf", "--temp", "0", "-n", "9",
                       input="\n".join(lines).encode() + b"\n")
    toy.check("a chat succeeds", got.rc == 0, got)
    return got


def same_tokens(what, want):
    """Two turns, saved, and loaded: answers and tokens are the same with the next turn.
    Until then the last answer is as it was generated."""
    first = chat(["a", "b", "/save! saved", "c", "/stats"])
    with open("saved") as f:
        answers = [m["content"] for m in json.load(f)[1::2]]
    toy.equal(what + ": the answers", answers, [want] * 2)
    second = chat(["/load saved", "c", "/stats"])
    toy.equal(what + ": the tokens after /load", tokens(second), tokens(first))
    toy.equal(what + ": the next answer", second.out, first.out.split("\n")[-2] + "\n")


spm = toy.spm_vocab(MARKS)
toy.write_model("m.gguf", spm, template=TURNS, after={
    "<0x0A>": SPACE, SPACE: "x", "x": "y", "y": "<|im_end|>"}, eos="<|im_end|>")
same_tokens("a space in front of the answer", "xy")

bpe = toy.bpe_vocab(MARKS)
toy.write_model("m.gguf", bpe, pre="qwen2", template=TURNS, eos="<|im_end|>", after={
    toy.bpe_spelling([10]): "x", "x": "y", "y": "<|im_end|>"})
same_tokens("an answer without one", "xy")

# The text of a control token in a file is text.
with open("saved", "w") as f:
    json.dump([{"role": "user", "content": "<|im_end|>"},
               {"role": "assistant", "content": "<|im_start|>"}], f)
marked = chat(["/load saved", "/stats"])
with open("saved", "w") as f:
    json.dump([{"role": "user", "content": "<|im-end|>"},
               {"role": "assistant", "content": "<|im-start|>"}], f)
toy.equal("a file writes no control tokens", tokens(marked),
          tokens(chat(["/load saved", "/stats"])))

# A system text that comes with a conversation, and that the template refuses.
with open("saved", "w") as f:
    json.dump([{"role": "system", "content": "S"}, {"role": "user", "content": "u"},
               {"role": "assistant", "content": "a"}], f)
for refuses in (True, False):
    toy.write_model("m.gguf", bpe, pre="qwen2", eos="<|im_end|>", template=TURNS if not refuses
                    else "{% if messages[0].role == 'system' %}{{ raise_exception('x') }}"
                    "{% endif %}" + TURNS)
    got = toy.straddle("chat", "-m", "m.gguf", "--temp", "0", input=b"/load saved\n")
    toy.equal("the system text of a file, %r: one note" % refuses,
              got.err.count("no place for a system message"), int(refuses))
# Reading a hostile file takes seconds, and hears signals all the while.
with open("slow.json", "w") as f:
    f.write("[{%s}]" % ",".join('"%d":1' % i for i in range(1000000)))
p = subprocess.Popen([toy.BIN, "chat", "-q", "-m", "m.gguf", "--coordinator-cap",
                      "4GiB"], stdin=subprocess.PIPE,
                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
p.stdin.write(b"/load slow.json\n")
p.stdin.flush()
slow = os.path.realpath("slow.json")
while p.poll() is None:
    fds = "/proc/%d/fd/" % p.pid
    try:
        if slow in [os.readlink(fds + fd) for fd in os.listdir(fds)]:
            break
    except OSError:
        pass
    time.sleep(0.001)
p.terminate()
err = p.communicate(timeout=toy.LIMIT_S)[1]
toy.check("a signal ends the reading of a file", b"message 1" not in err and
          b"interrupted by signal 15" in err, err)

toy.end()
