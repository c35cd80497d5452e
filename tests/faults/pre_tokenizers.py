"""Words as the models' own pre-tokenizers cut them: marks stay in their word and case
ends a word in any script (o200k), digits one by one (DeepSeek LLM), and Falcon's digits,
which are looked for in the bytes of characters."""
import toy


def join(symbols, pair):
    out = []
    for symbol in symbols:
        if out and (out[-1], symbol) == pair:
            out[-1] += symbol
        else:
            out.append(symbol)
    return out


def merges_of(words):
    """Merges that make one token of each word, whichever words share their parts: the
    first pair that is left merges everywhere."""
    merges, rows = [], [[toy.bpe_spelling([b]) for b in word] for word in words]
    while any(len(row) > 1 for row in rows):
        pair = next(tuple(row[:2]) for row in rows if len(row) > 1)
        merges.append(" ".join(pair))
        rows = [join(row, pair) for row in rows]
    return merges


def check_words(pre, text, words):
    """Both the words and the whole text could be one token: only the pre-tokenizer
    decides."""
    words = [w if isinstance(w, bytes) else w.encode() for w in words]
    merges = merges_of(words + [text.encode()])
    vocab = toy.bpe_vocab(merges=merges)
    toy.write_model("m.gguf", vocab, pre=pre, merges=merges)
    got = toy.straddle("tokenize", "-m", "m.gguf", "-f", "-", input=text.encode())
    want = [str(toy.token_id(vocab, toy.bpe_spelling(w))) for w in words]
    toy.equal("%s: %r" % (pre, text), got.out.split(), want)


for pre in ("gpt-4o", "llama4"):
    check_words(pre, "नमस्ते दुनिया", ["नमस्ते", " दुनिया"])
    check_words(pre, "ที่นี่", ["ที่นี่"])
    check_words(pre, "עִבְרִית", ["עִבְרִית"])
    check_words(pre, "ПриветМир", ["Привет", "Мир"])
    check_words(pre, "ÉCOLEété", ["ÉCOLEété"])
    check_words(pre, "e\u0301te\u0301", ["e\u0301te\u0301"])
    check_words(pre, "мир'S ok", ["мир'S", " ok"])
check_words("tekken", "नमस्ते'S", ["नमस्ते", "'S"])
check_words("deepseek-llm", "x1234", ["x", "1", "2", "3", "4"])
check_words("falcon", " 12мы", [" ", "12", b"\xd0", b"\xbc", "ы"])
check_words("falcon", "12345½", ["123", "45", b"\xc2", b"\xbd"])


# A file that names none: that of its family, if there is only one.
for arch, pre in (("qwen2", "qwen2"), ("gpt-oss", "gpt-4o"), ("llama", "default")):
    vocab = toy.bpe_vocab(merges=["1 2"])
    toy.write_model("m.gguf", vocab, pre="gpt-2", merges=["1 2"],
                    without=["tokenizer.ggml.pre"],
                    keys={"general.architecture": (toy.STRING, arch)})
    got = toy.straddle("tokenize", "-m", "m.gguf", "-p", "12")
    toy.equal("%s: tokens" % arch, len(got.out.split()), 2 if pre == "qwen2" else 1)
    toy.check("%s: one note" % arch, got.err.count("note:") == 1 and
              '"%s"' % pre in got.err, got)
toy.end()
