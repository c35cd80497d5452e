"""tests/faults/toy.py - library of the scripts in this folder: toy models whose text the
test decides, the program run on them, and checks.

A toy model has one layer that adds nothing, so its next token depends on the last one
only: `after` maps a token to the one that follows it.  Format: GGUF version 3, from
ggml's docs/gguf.md.

A script checks and ends with end():

	import toy
	vocab = toy.spm_vocab(["<|im_end|>"])
	toy.write_model("m.gguf", vocab, after={"a": "b"})
	got = toy.straddle("run", "-q", "-m", "m.gguf", "-p", "a", "-n", "1")
	toy.check("b follows a", got.out == "b\\n", got)
	toy.end()

It runs in a temporary folder.  STRADDLE_BIN names the program."""
import atexit
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

BIN = os.path.abspath(os.environ.get("STRADDLE_BIN", "build/straddle"))
TESTS = os.path.abspath(os.environ.get("STRADDLE_TESTS", "tests"))
LIMIT_S = 300
TOPIC = os.path.basename(sys.argv[0])[:-3]

# Types of metadata values, and their codes for struct.
(UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64,
 INT64, FLOAT64) = range(13)
CODES = dict(zip((UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, UINT64,
                  INT64, FLOAT64), "BbHhIifBQqd"))
# Kinds of tokens.
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
F32, F16 = 0, 1			# types of tensors

counts = {"passed": 0, "failed": 0}
folder = tempfile.mkdtemp(prefix="straddle-fault.")
atexit.register(shutil.rmtree, folder, True)
os.chmod(folder, 0o755)		# some tests become another user
os.chdir(folder)
os.environ["HOME"] = folder	# no user's settings
for name in ("STRADDLE_CPU_MASK", "STRADDLE_SEED", "XDG_STATE_HOME"):
    os.environ.pop(name, None)


# --- checks ---

class Result:
    """How a command ended: rc, out and err (text), raw and err_raw (their bytes)."""

    def __init__(self, args, rc, out, err):
        self.args, self.rc, self.raw, self.err_raw = args, rc, out, err
        self.out = out.decode("utf8", "replace")
        self.err = err.decode("utf8", "replace")

    def __repr__(self):
        return "%s: exit code %d\n    out: %.400r\n    err: %.800r" % (
            " ".join(self.args), self.rc, self.out, self.err)


def straddle(*args, **options):
    """Run the program; options are those of subprocess.run."""
    options.setdefault("stdin", subprocess.DEVNULL)
    if "input" in options:
        del options["stdin"]
    args = [str(a) for a in args]
    p = subprocess.run([BIN] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=LIMIT_S, **options)
    return Result(args, p.returncode, p.stdout, p.stderr)


def check(label, holds, detail=""):
    """Count a check; a failed one prints its label and the detail."""
    counts["passed" if holds else "failed"] += 1
    if not holds:
        print("%s: FAILED: %s\n    %s" % (TOPIC, label, detail))
    return holds


def equal(label, got, want):
    return check(label, got == want, "got %r, want %r" % (got, want))


def skip(reason):
    print("%s: skipped: %s" % (TOPIC, reason))
    sys.exit(77)


def is_sanitized():
    """Is the program built with a sanitizer, whose memory is in no plan?"""
    return subprocess.run(["grep", "-qaE", "__(asan|tsan)_init", BIN]).returncode == 0


def end():
    print("%s: %d passed, %d failed" % (TOPIC, counts["passed"], counts["failed"]))
    sys.exit(counts["failed"] > 0 or counts["passed"] == 0)


# --- control groups ---

class Group:
    """A new group of a controller, v1 or v2, below this process's own; skips where this
    user cannot make one.  with Group("cpu") as g: ..."""

    def __init__(self, controller, parent=None):
        above = parent.folder if parent else self.own(controller)
        self.folder = os.path.join(above, "fault.%d" % os.getpid())
        self.v1 = not os.path.exists(os.path.join(above, "cgroup.controllers"))
        if parent and not self.v1:
            parent.write("cgroup.subtree_control", "+" + controller)

    @staticmethod
    def own(controller):
        """The folder of this process's group, where groups with the controller can be
        made below it."""
        paths = {}
        for line in open("/proc/self/cgroup"):
            _, names, path = line.rstrip("\n").split(":", 2)
            paths.update((n, path) for n in names.split(","))
        for line in open("/proc/self/mountinfo"):
            words, rest = [part.split() for part in line.split(" - ", 1)]
            v1 = rest[0] == "cgroup" and controller in rest[2].split(",")
            name = controller if v1 else ""
            if not v1 and rest[0] != "cgroup2" or name not in paths:
                continue
            at = words[4] + paths[name].rstrip("/")
            if v1 or controller in open(at + "/cgroup.subtree_control").read().split():
                if os.access(at, os.W_OK):
                    return at
        skip("needs a %s group in which this user may make others" % controller)

    def __enter__(self):
        try:
            os.mkdir(self.folder)
        except OSError as e:
            skip("%s: %s" % (self.folder, e.strerror))
        return self

    def __exit__(self, *_):
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                return os.rmdir(self.folder)
            except OSError:		# a process that has ended leaves a moment later
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as f:
            f.write(str(text))

    def enter(self, user=None):
        """A preexec_fn: move into the group, then become this user."""
        def move():
            self.write("cgroup.procs", "0")
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
        return move


# --- vocabularies: lists of (text, kind) ---

def spm_vocab(more=(), kind=CONTROL):
    """SentencePiece style: the unknown token, BOS and EOS with ids 0 to 2, every byte, a
    token for each printable character of ASCII, and more, of this kind or (text, kind)."""
    vocab = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    vocab += [("<0x%02X>" % i, BYTE) for i in range(256)]
    vocab += [("\u2581", NORMAL)] + [(chr(i), NORMAL) for i in range(33, 127)]
    return vocab + [m if isinstance(m, tuple) else (m, kind) for m in more]


def bpe_spelling(data):
    """The characters that stand for bytes in a byte-level BPE vocabulary (GPT-2's
    bytes_to_unicode)."""
    shown = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [i for i in range(256) if i not in shown]
    return "".join(chr(i) if i in shown else chr(256 + hidden.index(i)) for i in data)


def bpe_vocab(more=(), kind=CONTROL, merges=(), without=()):
    """Byte-level BPE: every byte that is not in `without`, the results of the merges
    ("a b"), and more, of this kind or (text, kind)."""
    vocab = [(bpe_spelling([i]), NORMAL) for i in range(256) if i not in without]
    vocab += [(m.replace(" ", ""), NORMAL) for m in merges]
    return vocab + [m if isinstance(m, tuple) else (m, kind) for m in more]


def token_id(vocab, text):
    """The last token with this text: the one that the program finds."""
    return len(vocab) - 1 - [t for t, _ in vocab][::-1].index(text)


# --- files ---

def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(vtype, v):
    if vtype == STRING:
        return string(v)
    if vtype == ARRAY:
        etype, items = v
        if etype in (STRING, ARRAY):
            body = b"".join(value(etype, item) for item in items)
        else:
            body = struct.pack("<%d%s" % (len(items), CODES[etype]), *items)
        return struct.pack("<IQ", etype, len(items)) + body
    return struct.pack("<" + CODES[vtype], v)


def write_gguf(path, keys, tensors):
    """keys: {key: (type, value)}; tensors: (name, dimensions, type, bytes)."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    for key, (vtype, v) in keys.items():
        head += string(key) + struct.pack("<I", vtype) + value(vtype, v)
    data = b""
    for name, ne, ttype, content in tensors:
        head += string(name) + struct.pack("<I%dQ" % len(ne), len(ne), *ne)
        head += struct.pack("<IQ", ttype, len(data))
        data += content + bytes(-len(content) % 32)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def f16(values):
    return struct.pack("<%de" % len(values), *values)


def f32(values):
    return struct.pack("<%df" % len(values), *values)


def write_model(path, vocab, arch="llama", pre=None, merges=(), after=None, template=None,
                bos=None, eos=None, keys=None, without=(), tensors=(), replace=None, ctx=256):
    """Write a toy model.  pre: the pre-tokenizer of a byte-level BPE vocabulary; None
    makes a SentencePiece one.  after: {text or id: text or id}.  keys: further metadata,
    or a replacement.  without: keys to leave out.  tensors: further ones."""
    def find(t):
        return t if isinstance(t, int) else token_id(vocab, t)

    n, heads, dim, ff = len(vocab), 2, 32, 64
    embd = -(-n // 64) * 64 if after else 64
    q = heads * dim
    rows = bytearray(2 * embd * n)
    head = bytearray(2 * embd * n)
    for i in range(n if after else 0):
        struct.pack_into("<e", rows, 2 * (i * embd + i), 1.0)
    for i, j in (after or {}).items():
        struct.pack_into("<e", head, 2 * (find(j) * embd + find(i)), 8.0)

    def zeros(cols, nrows):
        return [cols, nrows], F16, bytes(2 * cols * nrows)
    ones = [embd], F32, f32([1.0] * embd)
    blk = "blk.0."
    ts = [("token_embd.weight", [embd, n], F16, bytes(rows)),
          ("output_norm.weight", *ones),
          ("output.weight", [embd, n], F16, bytes(head)),
          (blk + "attn_norm.weight", *ones), (blk + "ffn_norm.weight", *ones),
          (blk + "attn_output.weight", *zeros(q, embd)),
          (blk + "ffn_down.weight", *zeros(ff, embd))]
    if arch == "phi3":
        ts += [(blk + "attn_qkv.weight", *zeros(embd, 3 * q)),
               (blk + "ffn_up.weight", *zeros(embd, 2 * ff))]
    else:
        ts += [(blk + "attn_%s.weight" % x, *zeros(embd, q)) for x in "qkv"]
        ts += [(blk + "ffn_%s.weight" % x, *zeros(embd, ff)) for x in ("gate", "up")]
    if arch == "qwen2":
        ts += [(blk + "attn_%s.bias" % x, [q], F32, bytes(4 * q)) for x in "qkv"]
    if arch in ("qwen3", "gemma3"):
        ts += [(blk + "attn_%s_norm.weight" % x, [dim], F32, f32([1.0] * dim))
               for x in "qk"]
    if arch in ("gemma2", "gemma3"):
        ts += [(blk + "post_%s_norm.weight" % x, *ones)
               for x in ("attention", "ffw")]

    a = arch + "."
    kv = {"general.architecture": (STRING, arch), "general.name": (STRING, "toy"),
          a + "block_count": (UINT32, 1), a + "context_length": (UINT32, ctx),
          a + "embedding_length": (UINT32, embd), a + "feed_forward_length": (UINT32, ff),
          a + "attention.head_count": (UINT32, heads),
          a + "attention.key_length": (UINT32, dim),
          a + "attention.value_length": (UINT32, dim),
          a + "rope.dimension_count": (UINT32, dim),
          a + "attention.layer_norm_rms_epsilon": (FLOAT32, 1e-5),
          "tokenizer.ggml.tokens": (ARRAY, (STRING, [t for t, _ in vocab])),
          "tokenizer.ggml.token_type": (ARRAY, (INT32, [k for _, k in vocab]))}
    if pre is None:
        kv["tokenizer.ggml.model"] = STRING, "llama"
        kv["tokenizer.ggml.scores"] = ARRAY, (FLOAT32, [-float(i) for i in range(n)])
    else:
        kv["tokenizer.ggml.model"] = STRING, "gpt2"
        kv["tokenizer.ggml.pre"] = STRING, pre
        kv["tokenizer.ggml.merges"] = ARRAY, (STRING, list(merges))
    for key, token in (("bos", bos), ("eos", eos)):
        if token is not None:
            kv["tokenizer.ggml.%s_token_id" % key] = UINT32, find(token)
    if template is not None:
        kv["tokenizer.chat_template"] = STRING, template
    kv.update(keys or {})
    for key in without:
        kv.pop(key, None)
    replace = replace or {}
    write_gguf(path, kv, [(t[0], *t[1:3], replace.get(t[0], t[3])) for t in ts] +
               list(tensors))
