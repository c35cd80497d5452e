"""Chat templates are followed; of one that fails its words are said, and its markers count; the tokens of their markers
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

# A chat without tools leaves the variable unset.
for test in ("tools", "tools is defined", "documents is defined"):
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

# A template that fails: its words, and the built-in form of its markers.
for template, words, form in (
        ("{{ raise_exception('no users') }}" + TURNS + BEGIN, "no users", "ChatML"),
        ("{{ tools | frob }}<|im_start|>", "frob", "ChatML"),
        (TURNS.replace("m.content", "'x'") + BEGIN, "does not write a user's message", "ChatML"),
        (TURNS + BEGIN + "{# %s #}" % ("x" * (1 << 18)), "262144", "ChatML"),
        ("{{ 'x' * 10 ** 9 }}<|im_start|>", "more than its limit", "ChatML"),
        ("\x1b[31m{{ nothing() }}", "undefined", "plain")):
    got, note = count(template, "-p", "hi")
    toy.check("the words of %.40r" % template, words in note and
              'the built-in form "%s" is used' % form in note, note)
    toy.equal("the form of %.40r" % template, got, plain if form == "ChatML" else 2)
    toy.check("no control characters", "\x1b" not in note, note)

# One that refuses a system text gets it in front of the user's.
refuses = TURNS.replace("{{", "{% if m.role == 'system' %}{{ raise_exception('no system') }}"
                        "{% endif %}{{", 1) + BEGIN
got, note = count(refuses, "-p", "hi", "--system", "S")
toy.check("a refused system text", got == plain + len("S\n\n") and "no place for a system" in
          note, (got, note))

# A file with a template for tools.
toy.write_model("m.gguf", toy.bpe_vocab(MARKS), arch="llama", pre="qwen2", template="plain",
                eos="<|endoftext|>", keys={"tokenizer.chat_template.tool_use":
                                           (toy.STRING, "tools{{ eos_token }}")})
for tools, want in ([], "plain"), (None, "plain"), ([{"name": "f"}], "tools<|endoftext|>"):
    with open("vars.json", "w") as f:
        json.dump({"messages": [], "tools": tools}, f)
    toy.equal("tools %r" % tools, toy.straddle("render", "m.gguf", "--vars", "vars.json").out,
              want)

# Another template, and its arguments.
asked, _ = count(TURNS, "-p", "hi", "--chat-template", "ChatML")
toy.equal("a built-in form by its name", asked, plain)
open("t.jinja", "w").write("{% if loud %}LOUD{% endif %}" + TURNS + BEGIN)
asked, _ = count(TURNS, "-p", "hi", "--chat-template", "t.jinja")
toy.equal("a file", asked, plain)
asked, _ = count(TURNS, "-p", "hi", "--chat-template", "t.jinja", "--template-arg", "loud=true")
toy.equal("its argument", asked, plain + 4)
for arg, words in (("messages=[]", "the conversation itself"), ("bos_token=1", "itself"),
                   ("loud", "NAME=JSON"), ("loud={", "no JSON"), ("=1", "NAME=JSON"),
                   ("n" * 64 + "=1", "64 bytes")):
    got = toy.straddle("run", "-m", "m.gguf", "-s", "cpu", "--chat", "-n", "0", "-p", "hi",
                       "--template-arg", arg)
    toy.check("--template-arg %s is refused" % arg, got.rc == 2 and words in got.err, got)

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
