"""Writes testdata/tokenizers.json: small tokenizers of the kinds that models have, and the token IDs that Hugging Face's
tokenizers gives for strings. Also writes the IDs of tiktoken, if the folder TABLES has the rank tables of its encodings.

    python texttokens.py [TABLES]
"""

import base64
import json
import pathlib
import random
import sys
import unicodedata

import tiktoken
import tiktoken_ext.openai_public as openai
import tokenizers as hf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
# Characters that Unicode 14 has: Python 3.12's unicodedata is of version 15, as Go's unicode package.
ALL = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
LOW = [c for c in ALL if c < 0x3000]
SPACES = [" ", "  ", "   ", "\n", "\n\n", " \n", "\r\n", "\t", "\t\t", "\n ", "\n\n  ", "\r", "\v", "\f", "\u00a0", "\u3000", ""]
WORDS = """the The don't I'LL we'Re can'ſ he'S x1 12 345 6789 01234567890 http://a.b/c foo_bar __init__ -- ... !!! ?!
"q" (a) [b] {c} naïve Straße ÅNGSTRÖM Ω Ⅷ ½ ² ٣ १२३ 你好 世界 こんにちは カタカナ 한국어 привет ДОМ مرحبا नमस्ते עברית
😀 👩‍👩‍👧 🇩🇪 é é <|endoftext|> <s> </s> ▁ ▁▁ ' 's 'T end. // /""".split() + ["\x1c", "\x00", "\ufeff", "\u2028", "\u0085"]


def text(rng):
    kind = rng.random()
    if kind < 0.35:
        return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(1, 12)))
    if kind < 0.5:
        return "".join(rng.choice(SPACES + [" "] * 3) if rng.random() < 0.3 else chr(rng.randrange(32, 127))
                       for _ in range(rng.randint(1, 60)))
    if kind < 0.6:
        return "".join(chr(rng.choice(ALL)) for _ in range(rng.randint(1, 20)))
    if kind < 0.75:
        return "".join(rng.choice(SPACES) if rng.random() < 0.2 else chr(rng.choice(LOW)) for _ in range(rng.randint(1, 30)))
    if kind < 0.8:
        return rng.choice("ab1 \nZ.é") * rng.randint(1, 300)
    if kind < 0.9:
        return "".join(rng.choice(SPACES + ["a", "1", ".", "'", "/"]) for _ in range(rng.randint(1, 25)))
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(1, 200)))


def trained(sample, pre=None, norm=None, dec=None, special=("<|endoftext|>",), vocab=400, **model):
    t = Tokenizer(models.BPE(**model))
    for name, part in (("normalizer", norm), ("pre_tokenizer", pre), ("decoder", dec)):
        if part is not None:
            setattr(t, name, part)
    isBytes = "ByteLevel" in str(pre)
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if isBytes else [])
    t.train_from_iterator(sample, trainer)
    file = json.loads(t.to_str())
    # the tokens of byte_fallback are not added tokens in the files of models
    file["added_tokens"] = [a for a in file["added_tokens"] if not a["content"].startswith("<0x")]
    return file


def wordpiece(sample, **normalizer):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(**normalizer)
    t.pre_tokenizer, t.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=600, show_progress=False, special_tokens=[
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True)])
    t.train_from_iterator(sample, trainer)
    return json.loads(t.to_str())


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace("{1,3}", "")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
            r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def kinds(lines):
    level = pre_tokenizers.ByteLevel
    rest = level(add_prefix_space=False, use_regex=False)

    def split(regex, behavior="isolated", invert=False):
        return pre_tokenizers.Split(Regex(regex), behavior, invert=invert)

    def splits(*parts):
        return pre_tokenizers.Sequence([*parts, rest])

    all_bytes = [f"<0x{i:02X}>" for i in range(256)]
    marks = ["<unk>", "<s>", "</s>"]
    fallback = dict(special=marks + all_bytes, vocab=600, unk_token="<unk>", fuse_unk=True, byte_fallback=True,
                    dec=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)]))
    legacy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    mask = ("<s>", "</s>", AddedToken("<mask>", lstrip=True))
    words = [w for line in lines for w in line.split()]
    yield "gpt2", trained(lines, level(add_prefix_space=False))
    yield "roberta", trained(lines, level(add_prefix_space=True), special=mask)
    yield "llama3", trained(lines, splits(split(LLAMA3)), ignore_merges=True)
    yield "qwen", trained(lines, splits(split(QWEN)), norm=normalizers.NFC())
    yield "tekken", trained(lines, splits(split(TEKKEN)))
    yield "deepseek", trained(lines, splits(*map(split, DEEPSEEK)), special=["<｜end▁of▁sentence｜>"])
    digits = pre_tokenizers.Digits(individual_digits=True)
    yield "starcoder", trained(lines, pre_tokenizers.Sequence([digits, level(add_prefix_space=False)]))
    yield "llama2", trained(words, norm=legacy, **fallback)
    yield "mistral", trained(words, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), **fallback)
    yield "metaspace", trained(lines, pre_tokenizers.Metaspace(prepend_scheme="always"), special=marks, unk_token="<unk>")
    gemma = pre_tokenizers.Split(" ", "merged_with_previous")
    yield "gemma", trained(lines, gemma, norm=normalizers.Replace(" ", "▁"), **fallback)
    yield "unknown", trained(words, special=["<unk>"], unk_token="<unk>", vocab=200)
    yield "dropped", trained(words, special=["<s>"], vocab=200)
    yield "removed", trained(lines, splits(split(LLAMA3, "removed", True)))
    yield "previous", trained(lines, splits(split(r"\s+", "merged_with_previous")))
    yield "next", trained(lines, splits(split(r"[\s\-]", "merged_with_next")))
    yield "bert", wordpiece(lines, lowercase=True)
    yield "bertcased", wordpiece(lines, lowercase=False)
    yield "bertlower", wordpiece(lines, clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=True)


def encodings(tables):
    def load(url, expected_hash=None):
        lines = (tables / url.split("/")[-1]).read_bytes().splitlines()
        return {base64.b64decode(word): int(rank) for word, rank in map(bytes.split, lines)}

    openai.load_tiktoken_bpe = load
    for name, build in (("gpt2", openai.r50k_base), ("cl100k", openai.cl100k_base), ("o200k", openai.o200k_base)):
        yield name, tiktoken.Encoding(**build())


def main():
    rng = random.Random(1)
    lines = (HERE / "README.md").read_text().splitlines(keepends=True)
    lines += ["你好世界 こんにちは 한국어 привет мир مرحبا नमस्ते naïve Straße don't I'LL 12345 foo_bar\n"] * 20
    texts = [text(rng) for _ in range(60)]
    made = []
    for name, file in kinds(lines):
        t = Tokenizer.from_str(json.dumps(file))
        cases = [{"text": s, "ids": t.encode(s, add_special_tokens=False).ids} for s in texts]
        made.append({"name": name, "file": file, "cases": cases})
    record("tokenizers.json", {"made_with": {"tokenizers": hf.__version__}, "tokenizers": made})
    if len(sys.argv) > 1:
        made = []
        for name, t in encodings(pathlib.Path(sys.argv[1])):
            made.append({"name": name, "cases": [{"text": s, "ids": t.encode_ordinary(s)} for s in texts]})
        record("encodings.json", {"made_with": {"tiktoken": tiktoken.__version__}, "tokenizers": made})


def record(name, value):
    (HERE / "testdata" / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
