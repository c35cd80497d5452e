#!/usr/bin/env python3
"""Headers, prompts and settings that claim or hold huge things: each is refused with a
message that names it, or works, and the coordinator stays small.

The figures of every command are printed, times too, but no time is checked.  Most files
are sparse.  Arguments name cases."""
import itertools
import os
import re
import struct
import subprocess
import sys
import threading
import time

import toy

MIB = 1 << 20
MOST_BYTES = 64 * MIB		# resident memory of the coordinator
STOP_BYTES = 1024 * MIB		# more than the test lets any of them take
SANITIZED = toy.is_sanitized()
STOP_S = 600
POLL_S = 0.002
WHICH = sys.argv[1:]

largest, slowest = (0, ""), (0, "")


# --- commands and their memory ---

def peak_bytes(pid):
    """VmHWM of a process; 0 once it has ended."""
    try:
        with open("/proc/%s/status" % pid) as f:
            found = re.search(r"VmHWM:\s*(\d+) kB", f.read())
    except OSError:
        return 0
    return int(found.group(1)) << 10 if found else 0


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return f.read().split()
    except OSError:
        return []


class Output(threading.Thread):
    """Reads a pipe to its end and keeps the beginning and the end.  After `most` bytes,
    if given, it ends the process."""

    def __init__(self, pipe, process, most=None):
        super().__init__(daemon=True)
        self.pipe, self.process, self.most = pipe, process, most
        self.head, self.tail, self.nbytes = b"", b"", 0
        self.start()

    def run(self):
        while True:
            more = os.read(self.pipe.fileno(), 65536)
            if not more:
                return
            self.nbytes += len(more)
            if len(self.head) < 65536:
                self.head += more
            else:
                self.tail = (self.tail + more)[-65536:]
            if self.most is not None and self.nbytes >= self.most:
                self.process.terminate()

    def text(self):
        self.join()
        self.pipe.close()
        return (self.head + self.tail).decode("utf8", "replace")


def feed(process, blocks):
    """Write the blocks to the process's stdin, as far as it reads."""
    try:
        for b in blocks:
            process.stdin.write(b)
        process.stdin.close()
    except OSError:
        pass


class Watched:
    """A run of the program: rc, out, err, the peaks of the coordinator and of its largest
    child, and the seconds."""

    def __init__(self, args, blocks=None, most_out=None):
        began = time.monotonic()
        p = subprocess.Popen([toy.BIN] + [str(a) for a in args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             stdin=subprocess.PIPE if blocks else subprocess.DEVNULL)
        out, err = Output(p.stdout, p, most_out), Output(p.stderr, p)
        if blocks:
            threading.Thread(target=feed, args=(p, blocks), daemon=True).start()
        peak = self.child = 0
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, peak_bytes(p.pid))
            self.child = max([self.child] + [peak_bytes(c) for c in children(p.pid)])
            if peak > STOP_BYTES or time.monotonic() - began > STOP_S:
                p.kill()
            time.sleep(POLL_S)
        p.returncode = self.rc = os.waitstatus_to_exitcode(status)
        # The kernel's count is exact, but includes children that were waited for.
        exact = usage.ru_maxrss << 10
        self.peak = exact if exact <= MOST_BYTES else peak
        self.seconds = time.monotonic() - began
        self.out, self.err = out.text(), err.text()


def attempt(label, args, names, blocks=None, most_out=None, works=True):
    """Run a command on a hostile input.  It is refused, with a message that has one of the
    names, or works, where it may; what it says has no control characters."""
    global largest, slowest
    label = "%s: %s" % (label, args[0])
    w = Watched(args, blocks, most_out)
    print("%-48s exit %3d, %7.1f MiB, child %6.1f MiB, %6.2f s  %s" % (
        label, w.rc, w.peak / MIB, w.child / MIB, w.seconds,
        w.err.strip()[-160:].replace("\n", " | ")), flush=True)
    # It worked until it was ended.
    enough = most_out is not None and (w.rc == -15 or "by signal 15" in w.err)
    toy.check("%s is refused%s" % (label, " or works" if works else ""),
              0 < w.rc <= 4 or works and (w.rc == 0 or enough), (w.rc, w.err[-500:]))
    if w.rc > 0 and not enough:
        toy.check("%s: the message names it" % label, any(n in w.err for n in names),
                  w.err[-500:])
    said = w.err + w.out if args[0] == "inspect" else w.err
    raw = re.search("[^\n\t\x20-\x7e\xa0-\U0010ffff]", said)
    toy.check("%s prints no control" % label, raw is None, raw)
    if not SANITIZED:
        toy.check("%s: the coordinator has at most %d MiB" % (label, MOST_BYTES // MIB),
                  w.peak <= MOST_BYTES, "%.1f MiB" % (w.peak / MIB))
    largest, slowest = max(largest, (w.peak, label)), max(slowest, (w.seconds, label))


LONG = ["too long: split it"]
RUN = ("-s", "cpu,cap=64MiB", "-n", "1", "--temp", "0")


def on_header(label, names, commands=("inspect", "tokenize", "run"), works=True, path="m.gguf"):
    args = {"inspect": [], "tokenize": ["-p", "abc"], "run": [*RUN, "-q", "-p", "abc"],
            "chat": [*RUN, "-q"]}
    names = [*names, "the header has"]
    for c in commands:
        attempt(label, [c, path, "out.gguf", "q8_0"] if c == "quantize" else
                [c, "-m", path, *args[c]], names, [b"abc\n"] if c == "chat" else None,
                works=works)


def apart(function, *args):
    """Call a function in a process of its own: the kernel counts what this process has
    touched as touched by the programs that it starts."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*args)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


# --- files: lists of bytes, and of holes as their numbers of zeros ---

def pack(fmt, *values):
    return struct.pack("<" + fmt, *values)


def write_file(path, pieces):
    with open(path, "wb") as f:
        for p in pieces:
            if isinstance(p, int):
                f.seek(p, os.SEEK_CUR)
            else:
                f.write(p)
        f.truncate(f.tell())


def header(nkeys, ntensors=0):
    """The beginning of a file with nkeys keys, of them the first."""
    return (pack("4sIQQ", b"GGUF", 3, ntensors, nkeys) +
            key("general.architecture", toy.STRING) + toy.string("llama"))


def key(name, vtype):
    return toy.string(name) + pack("I", vtype)


def array(name, etype, count):
    return key(name, toy.ARRAY) + pack("IQ", etype, count)


def add_keys(nkeys, pieces, to="toy.gguf", path="m.gguf"):
    """Write a model with nkeys more keys, which the pieces hold.  One key more keeps its
    tensors aligned."""
    with open(to, "rb") as f:
        model = f.read()
    magic, version, ntensors, had = struct.unpack_from("<4sIQQ", model)
    n = sum(p if isinstance(p, int) else len(p) for p in pieces)
    n = -(n + len(array("toy.filler", toy.UINT8, 0))) % 32
    write_file(path, [pack("4sIQQ", magic, version, ntensors, had + nkeys + 1), *pieces,
                      array("toy.filler", toy.UINT8, n) + bytes(n), model[24:]])


MERGES, TOKENS = "tokenizer.ggml.merges", "tokenizer.ggml.tokens"


def add_vocab(n, tokens, merges=(array(MERGES, toy.STRING, 0),)):
    """Write the model with a BPE vocabulary of n tokens, whose bytes are pieces."""
    add_keys(4, [key("tokenizer.ggml.model", toy.STRING) + toy.string("gpt2"),
                 key("tokenizer.ggml.pre", toy.STRING) + toy.string("gpt-2"),
                 *merges, array(TOKENS, toy.STRING, n), *tokens], "none.gguf")


def counted(n, run, values):
    """n bytes: each value `run` times, over and over."""
    run = min(run, n)
    cycle = b"".join(bytes([c]) * run for c in values[:-(-n // run)])
    return (cycle * -(-n // len(cycle)))[:n]


def numbered(n, after=b""):
    """n strings, each a number of 8 digits, with `after` behind each."""
    one = pack("Q", 8) + bytes(8) + after
    buf = bytearray(one * n)
    for k in range(8):
        buf[8 + k::len(one)] = counted(n, 16 ** (7 - k), b"0123456789abcdef")
    return buf


def colliding():
    """65,536 texts with the same FNV-1a hash of 32 bits: after the blocks before it, both
    texts of a pair give the same state."""
    pairs = ("oyfnwg qqw1qw ms9dd1 oywn0i vxdphg ixnulu 1oehkd qwsfjg 63c1jw s1trco 80564r "
             "wxnofi cga44o m0jmdz r10lfo nuak4a pmdhrm 0kt8dy yymkvw 392979 ia2y7i gl3usq "
             "n84xzx j2jug2 c7xvcy ewyk00 ac6g3m d3ma1g c895l9 crcxxh javav0 7i9pmj").split()
    return map("".join, itertools.product(*zip(pairs[::2], pairs[1::2])))


# --- cases ---

def claims():
    for count in (1 << 31, 1 << 62):
        for what, pieces, name in (
                ("keys", [header(count)], "keys"),
                ("tensors", [header(1, count)], "tensors"),
                ("bytes", [header(2), key("general.name", toy.STRING), pack("Q", count)],
                 "general.name"),
                ("tokens", [header(2), array(TOKENS, toy.STRING, count)], TOKENS)):
            write_file("m.gguf", [*pieces, 4096])
            on_header("%d %s that the file lacks" % (count, what), [name, "truncated"],
                      ("inspect", "run"), works=False)


def tokens():
    n = 4 << 20
    apart(lambda: add_vocab(n, [numbered(n)]))
    on_header("4 Mi tokens", [TOKENS, "4194304 tokens"])
    n = 9000000
    add_vocab(n, [8 * n])
    on_header("9 million empty tokens", [TOKENS])
    add_vocab(1024, [pack("Q", 200 * MIB), 200 * MIB, 8 * 1023])
    on_header("a token of 200 MiB", ["token 0", TOKENS])


def collisions():
    apart(lambda: add_vocab(1 << 16, map(toy.string, colliding())))
    on_header("65,536 tokens that collide", [TOKENS], ("tokenize",))


def merges():
    more = ["ab"] + ["<|%d|>" % i for i in range(len(vocab) - 257)]
    chars = [toy.string(t) for t, _ in toy.bpe_vocab(more)]
    n = 4 << 20
    apart(lambda: add_vocab(len(chars), chars, [array(MERGES, toy.STRING, n),
                                                toy.string("a b") * n]))
    on_header("4 Mi merges", [MERGES])
    add_vocab(len(chars), chars, [array(MERGES, toy.STRING, 1), pack("Q", 200 * MIB),
                                  200 * MIB])
    on_header("a merge of 200 MiB", [MERGES])


def values():
    n = 250 * 10**6
    add_keys(1, [key("general.description", toy.STRING), pack("Q", n), n])
    on_header("a string of 250 MB", ["general.description", "250000008 bytes of metadata"],
              ("inspect", "tokenize", "run", "quantize"))
    add_keys(1, [array("toy.numbers", toy.INT32, n // 4), n])
    on_header("62 million numbers", ["toy.numbers"])
    n = 20 * 10**6
    add_keys(1, [array("toy.lists", toy.ARRAY, n), 12 * n])
    on_header("20 million arrays in an array", ["toy.lists"])
    apart(lambda: add_keys(1, [array("toy.deep", toy.ARRAY, 1),
                               pack("IQ", toy.ARRAY, 1) * 10**6]))
    on_header("arrays a million deep", ["toy.deep"], ("inspect", "run"), works=False)


def escapes():
    apart(lambda: add_keys(1, [key("general.description", toy.STRING),
                               toy.string("\x1b]0;owned\x07\x1b[2J" * (2 * MIB))]))
    on_header("28 MiB of escape sequences", ["general.description"], ("inspect", "run"))


def directory():
    n = 3 * 10**6
    apart(lambda: add_keys(n, [numbered(n, pack("IB", toy.UINT8, 1))]))
    on_header("3 million keys", ["keys"])
    n = 2 * 10**6
    apart(add_tensors, n)
    on_header("2 million tensors", ["tensors"], ("inspect", "run"))


def just_below():
    """Each part of the header is nearly as large as can be handed over."""
    keys, ntokens, text = 60000, 2300000, 22 * MIB
    apart(lambda: add_keys(keys + 5, [
        key("tokenizer.ggml.model", toy.STRING) + toy.string("gpt2"),
        key("tokenizer.ggml.pre", toy.STRING) + toy.string("gpt-2"),
        array(MERGES, toy.STRING, 0), array(TOKENS, toy.STRING, ntokens), numbered(ntokens),
        numbered(keys, pack("IB", toy.UINT8, 1)), key("toy.text", toy.STRING),
        pack("Q", text), text], "none.gguf"))
    on_header("60,000 keys, 22 MiB of text, 2,300,000 tokens", [TOKENS], ("inspect", "tokenize"))


def add_tensors(n):
    """Write the model with n tensors more, of 32 bytes each.  n is a multiple of 4."""
    data_off = 1 << 26			# behind the model's own
    buf = numbered(n, pack("IQIQ", 1, 8, toy.F32, data_off))
    size = len(buf) // n
    buf[size - 8::size] = counted(n, 1, range(0, 256, 32))
    buf[size - 7::size] = counted(n, 8, range(256))
    buf[size - 6::size] = counted(n, 8 << 8, range(256))
    buf[size - 5::size] = counted(n, 8 << 16, range(data_off >> 24, 256))
    with open("toy.gguf", "rb") as f:
        model = f.read()
    at = model.index(toy.string("token_embd.weight"))
    head = model[:8] + pack("Q", n + struct.unpack_from("<Q", model, 8)[0]) + model[16:at]
    write_file("m.gguf", [head, buf, model[at:], data_off + 32 * n])


def parts():
    n, each = 1024, 8 * MIB
    with open("toy.gguf", "rb") as f:
        ntensors = struct.unpack_from("<Q", f.read(16), 8)[0]
    for i in range(n):
        split = [key("split.no", toy.UINT16), pack("H", i), key("split.count", toy.UINT16),
                 pack("H", n), key("split.tensors.count", toy.INT32), pack("i", ntensors),
                 key("toy.text", toy.STRING), pack("Q", each), each]
        path = "p-%05d-of-%05d.gguf" % (i + 1, n)
        if i == 0:
            add_keys(4, split, path=path)
        else:
            write_file(path, [header(5), *split])
    on_header("1,024 parts with 8 MiB each", ["parts", "split", "header"], ("inspect", "run"),
              path="p-00001-of-01024.gguf")
    for i in range(n):
        os.unlink("p-%05d-of-%05d.gguf" % (i + 1, n))


def templates():
    for what, text in (("tags", b"{% if a %}{% endif %}" * 2400000), ("text", b"a" * 50000000)):
        apart(lambda: add_keys(1, [key("tokenizer.chat_template", toy.STRING),
                                   pack("Q", len(text)), text]))
        del text
        on_header("a chat template of 50 MB of " + what, ["template"],
                  ("inspect", "chat", "run"))


def lines(total, block, end=b""):
    return itertools.chain(itertools.repeat(block, total // len(block)), [end])


def prompts():
    """The context holds some KB of them."""
    big, model = ["holds at most"], ["-m", "toy.gguf", *RUN]
    write_file("prompt", [10**8])
    attempt("100 MB in a file", ["run", *model, "-f", "prompt"], big, works=False)
    attempt("100 MB in a pipe", ["run", *model, "-f", "-"], big, lines(10**8, b"a b " * 4096),
            works=False)
    attempt("100 MB in a line", ["chat", *model], [*big, "a line of more than"],
            lines(10**8, b"a b " * 4096, b"\n"))
    attempt("100 MB in a line of a file", ["run", *model, "--prompts", "prompt"], LONG,
            works=False)
    attempt("100 MB in lines", ["run", *model, "-q", "--prompts", "-"], LONG,
            lines(10**8, b"a\n" * 4096), works=False)
    attempt("30 MB in lines", ["run", *model, "-q", "--prompts", "-"], LONG,
            lines(30 * 10**6, b"a\n" * 4096), most_out=1)


def texts():
    """No context bounds them."""
    write_file("text", [10**8])
    for args in (["tokenize", "-m", "toy.gguf", "-f"], ["detokenize", "-m", "toy.gguf", "-f"],
                 ["eval", "-m", "toy.gguf", "--text"]):
        attempt("100 MB in a file", [*args, "text"], LONG, works=False)
    with open("text", "wb") as f:
        f.writelines(lines(8 * 10**6, b"a b, " * 200))
    attempt("8 MB in a file", ["tokenize", "-m", "toy.gguf", "-f", "text"], LONG)
    with open("text", "wb") as f:
        f.writelines(lines(8 * 10**6, b"97, 98, " * 200))
    attempt("8 MB of ids in a file", ["detokenize", "-m", "toy.gguf", "-f", "text"], LONG)


def settings():
    def block(c):
        return itertools.repeat(c * 65536, 10**9 // 65536)

    attempt("1 GB of newlines", ["plan", "-c", "/dev/stdin"], ["/dev/stdin"], block(b"\n"))
    attempt("1 GB of a string", ["plan", "-c", "/dev/stdin"], ["/dev/stdin"],
            itertools.chain([b'model = "'], block(b"a")))
    write_file("big.conf", [10**9])
    attempt("1 GB of zeros", ["plan", "-c", "big.conf"], ["big.conf"], works=False)


vocab = toy.spm_vocab(["<|im_end|>"])
OPTIONS = {"bos": 1, "eos": 2, "after": {"a": "b", "b": "c", "c": "a"}}
toy.write_model("toy.gguf", vocab, **OPTIONS)
toy.write_model("none.gguf", vocab, without=[
    "tokenizer.ggml." + k for k in ("model", "tokens", "scores", "token_type")], **OPTIONS)
for case in (claims, tokens, collisions, merges, values, escapes, directory, just_below,
             parts, templates, prompts, texts, settings):
    if not WHICH or case.__name__ in WHICH:
        case()
print("worst: %.1f MiB (%s), %.1f s (%s)" % (largest[0] / MIB, largest[1], *slowest))
toy.end()
