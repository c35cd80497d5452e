"""Chat templates are followed, or what is not followed is said; the tokens of their markers
are markers whatever type the file gives them."""
import json
import toy

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TURNS = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "
         "'<|im_end|>\\n' }}{% endfor %}")
BEGIN = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


def count(template, *args, vocab=None, **options):
    """The tokens of a chat's first prompt."""
    vocab = vocab or toy.bpe_vocab(MARKS)
    toy.write_model("m.gguf", vocab, arch="llama", pre="qwen2", template=template,
                    eos="<|endoftext|>", **options)
    got = toy.straddle("run", "--json", "-m", "m.gguf", "-s", "cpu", "--chat", "-n", "0",
                       "--temp", "0", *args)
    toy.check("exit code", got.rc == 0, got)
    return json.loads(got.out)["prompt_tokens"], got.err


PLAIN = 3 + len("user\nhi\nassistant\n")	# three markers
plain, note = count(TURNS + BEGIN, "-p", "hi")
toy.equal("ChatML", plain, PLAIN)
toy.check("its note", "chat template: ChatML\n" in note, note)

# A system text of the template's own, and an answer that it begins.
SYSTEM = "Be a machine."
OWN = ("{% if messages[0].role != 'system' %}<|im_start|>system\n" + SYSTEM +
       "<|im_end|>\n{% endif %}")
with_own, _ = count(OWN + TURNS + BEGIN, "-p", "hi")
given, _ = count(TURNS + BEGIN, "-p", "hi", "--system", SYSTEM)
toy.equal("a system text of its own", with_own, given)
thinks, _ = count(TURNS + BEGIN.replace("assistant\\n", "assistant\\n<think>\\n"), "-p", "hi",
                  vocab=toy.bpe_vocab(MARKS + [("<think>", toy.USER)]))
toy.equal("an answer begun with <think>", thinks, plain + 2)

# Blanks: trimmed where the template trims, and only there.
open("q.txt", "w").write(" hi \n")
for template, extra in ((TURNS, 2), (TURNS.replace("m.content", "m.content | trim"), 0),
                        (TURNS.replace("m.content", "m.content.rstrip()"), 1)):
    got, _ = count(template + BEGIN, "-f", "q.txt")
    toy.check("blanks", got - plain in (extra, extra + (extra == 2)),
              "%s: %d more" % (template, got - plain))

# A chat without tools has defined them, as none.
for test in ("tools is not defined", "tools is none and false", "documents is not defined",
             "tools is not none"):
    got, note = count("{%% if %s %%}TOOLS{%% endif %%}" % test + TURNS + BEGIN, "-p", "hi")
    toy.equal(test, (got, "not followed" in note), (plain, False))

# Names of roles with capitals, the first and the last of a list.
for role, name in (("m.role | title", "User"), ("m.role.capitalize()", "User"),
                   ("m.role | upper", "USER"), ("m['role'].lower()", "user"),
                   ("(messages | last).role", "user"), ("(messages | first).role", "user")):
    got, note = count(TURNS.replace("m.role", role) + BEGIN, "-p", "hi")
    want, _ = count(TURNS.replace("m.role", "'%s'" % name) + BEGIN, "-p", "hi")
    toy.equal(role, (got, "not followed" in note), (want, False))

# BOS: once, whoever writes it.
for add in (True, False, None):
    for writes in ("{{ bos_token }}", "<|endoftext|>", ""):
        keys = {} if add is None else {"tokenizer.ggml.add_bos_token": (toy.BOOL, add)}
        got, _ = count(writes + TURNS + BEGIN, "-p", "hi", bos="<|endoftext|>", keys=keys)
        toy.equal("BOS, %s, %r" % (add, writes), got, plain + bool(add or writes))

# The note names each part that is not followed.
for template, words in (
        ("{{ strftime_now('%H') }}" + TURNS + BEGIN, ("not followed", "dates")),
        ("{{ tools | sort }}<|im_start|>You are X. <think>", ("not followed", "tools",
                                                              "a system text", "thinking")),
        ("{% macro f(m) %}{{ m }}{% endmacro %}" + TURNS.replace("m.content", "f(m.content)"),
         ("not followed", "what it writes in", "f(m")),
        (TURNS + BEGIN + "{# %s #}" % ("x" * (1 << 18)), ("256 KiB",)),
        ("\x1b[31m{{ nothing() }}", ("none that is known here",))):
    _, note = count(template, "-p", "hi")
    toy.check("the note on %.40r" % template, all(w in note for w in words), note)
    toy.check("no control characters", "\x1b" not in note, note)
_, note = count(TURNS.replace("{{", "{% if m.role == 'system' %}{{ raise_exception('x') }}"
                              "{% endif %}{{", 1) + BEGIN, "-p", "hi", "--system", "S")
toy.check("a refused system text", "the place of the system text" in note, note)

# Markers whose type is that of text: encoded as one token where the template writes them,
# never from a message; they end an answer and are not shown.
ENDS = ("<|im_end|>", "<|stop_here|>", "[E]", "<end_of_turn>", "<turn|>")
for end in ENDS + (" <END>", "\n<|sep|>"):		# blanks may come in front
    for kind in (toy.CONTROL, toy.USER, toy.NORMAL)[0 if end in ENDS else 2:]:
        token = end.strip()
        vocab = toy.spm_vocab([("<|im_start|>", kind), (token, kind)])
        after = {"<0x0A>": "H", "H": "i", "i": token, token: "H"}
        toy.write_model("m.gguf", vocab, after=after, template=(TURNS + BEGIN).replace(
            "<|im_end|>", end))
        got = toy.straddle("run", "-q", "-m", "m.gguf", "-s", "cpu", "--chat", "-p", "x", "-n",
                           "12", "--temp", "0")
        toy.equal("%s of type %d ends an answer" % (end, kind), got.out, "Hi\n")
        one = toy.straddle("run", "--json", "-m", "m.gguf", "-s", "cpu", "--chat", "-p", "x",
                           "-n", "0", "--temp", "0")
        more = toy.straddle("run", "--json", "-m", "m.gguf", "-s", "cpu", "--chat", "-p",
                            "x" + end, "-n", "0", "--temp", "0")
        toy.equal("%s of type %d in a message is text" % (end, kind),
                  json.loads(more.out)["prompt_tokens"] -
                  json.loads(one.out)["prompt_tokens"], len(end))

# Without a template the names count that such tokens have in public models.
for end in ("<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>", "<|eot_id|>"):
    for kind in (toy.CONTROL, toy.NORMAL):
        toy.write_model("m.gguf", toy.spm_vocab([(end, kind)]), eos=2,
                        after={"x": "H", "H": "i", "i": end, end: "H"})
        got = toy.straddle("run", "-q", "-m", "m.gguf", "-s", "cpu", "-p", "x", "-n", "12",
                           "--temp", "0")
        toy.equal("%s of type %d ends a text" % (end, kind), got.out, "Hi\n")
toy.end()
