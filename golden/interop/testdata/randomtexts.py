"""Token IDs of Hugging Face's tokenizers.

A question is {"file": tokenizer.json as text, "seed": number, "count": number}; the answer is {"texts": [...], "ids":
[[...], ...]} for random texts, without special tokens added.
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "reference"))
import texttokens as reference  # the same texts as the recorded ones, of another seed


def answer(question):
    rng = random.Random(question["seed"])
    texts = [reference.text(rng) for _ in range(question["count"])]
    t = reference.Tokenizer.from_str(question["file"])
    return {"texts": texts, "ids": [t.encode(s, add_special_tokens=False).ids for s in texts]}


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
