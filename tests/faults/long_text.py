"""Texts that cannot fit are refused before they are read or tokenized, and a signal ends
the tokenizing of a long one."""
import signal
import subprocess
import time

import toy

vocab = toy.spm_vocab(["<|%s|>" % ("x" * 4000)])
toy.write_model("m.gguf", vocab, after={"a": "a"}, ctx=4096)
ARGS = ["-m", "m.gguf", "-s", "cpu", "-n", "1", "--temp", "0"]
MOST = 256 * 4004

# The context of 256 tokens holds 1,025,024 bytes at most.
with open("long", "wb") as f:
    f.write(b"a b " * (MOST // 4) + b"a")
for args, text in ((["run", "-f", "long"], None), (["run", "-f", "-"], "long"),
                   (["chat"], "long"), (["run", "--prompts", "long"], None)):
    more = {"input": open(text, "rb").read() + b"\n"} if text else {}
    got = toy.straddle(args[0], *ARGS, "--ctx", 256, *args[1:], **more)
    toy.check("%s is refused by its bytes" % args, got.rc in (1, 2) and
              "holds at most %d" % MOST in got.err and "--ctx" in got.err, got)

# A line of 15 MB takes seconds to tokenize.
chat = subprocess.Popen([toy.BIN, "chat", *ARGS, "--ctx", "4096",
                         "--coordinator-cap", "4GiB"], stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
chat.stdin.write(b"a b " * 3750000 + b"\n")
chat.stdin.flush()		# all but the pipe's own bytes are read
time.sleep(0.1)
chat.send_signal(signal.SIGTERM)
chat.stdin.close()
err = chat.stderr.read().decode()
chat.wait()
toy.check("SIGTERM ends tokenizing", chat.returncode != 0 and "interrupted" in err and
          "the message needs" not in err, err)
toy.end()
