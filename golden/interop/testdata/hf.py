"""Fields of transformers' TrainingArguments, read from its source: importing it would need torch.

A question is {}; the answer is {"version": ..., "keys": [{"key", "type", "default"}]}.
"""
import ast
import glob
import os
import sys

import driver  # first

FOLDER = os.path.join(sys.prefix, "transformers")


def kind(annotation):
    options = [o.strip() for o in annotation.split("|") if o.strip() != "None"]
    return options[0] if len(options) == 1 and options[0] in ("bool", "int", "float", "str") else "any"


def default(value):
    for keyword in getattr(value, "keywords", []):
        if keyword.arg == "default" and isinstance(keyword.value, (ast.Constant, ast.UnaryOp)):
            return ast.literal_eval(keyword.value)
    return None


def answer(_):
    path = os.path.join(FOLDER, "transformers", "training_args.py")
    with open(path, encoding="utf-8") as f:
        classes = [c for c in ast.parse(f.read()).body if isinstance(c, ast.ClassDef)]
    fields = next(c for c in classes if c.name == "TrainingArguments").body
    rows = [{"key": f.target.id, "type": kind(ast.unparse(f.annotation)), "default": default(f.value)}
            for f in fields if isinstance(f, ast.AnnAssign) and f.value is not None]
    version = os.path.basename(glob.glob(os.path.join(FOLDER, "transformers-*.dist-info"))[0]).split("-")[1]
    return {"version": version.removesuffix(".dist"), "keys": sorted(rows, key=lambda r: r["key"])}


driver.serve(answer)
