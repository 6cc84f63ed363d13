"""Megatron-LM's own parser. A question is {"args": [...], "world": 64, "env": {...}, "arch": 9}, with more keys for
some calls:

"call": "parse" (default) parses, validates and makes the TransformerConfig. The answer is {"args": {...}}.
"call": "memory" also estimates memory: {"gb": 80.0}, the line of report_theoretical_memory.
"call": "options" lists the parser's options: {"options": [...]}.
"""
import argparse
import contextlib
import copy
import io
import os
import re
import sys

import driver  # first

import torch
from megatron.core import utils
from megatron.core.models.common.embeddings import rope_utils
from megatron.training import arguments
from megatron.training.theoretical_memory_usage import report_theoretical_memory


# Some checks ask for Transformer Engine and for the GPU. Both are as on a cluster where Megatron-LM runs.
utils._te_version = utils.PkgVersion("2.15.0")
rope_utils.fused_apply_rotary_pos_emb = rope_utils.fused_apply_rotary_pos_emb_thd = utils
ARCH = [9]  # the GPU's compute capability: rules differ from Blackwell (10) on
arguments.get_device_arch_version = lambda: ARCH[0]
torch.is_grad_enabled = lambda: True
torch.cuda.get_device_capability = lambda *args: (ARCH[0], 0)

# Building the parser takes most of the time of a question, so it is built once. Its defaults are copied, because
# validate_args changes some of them in place.
PARSER = arguments.add_megatron_arguments(argparse.ArgumentParser("pretrain_gpt.py", allow_abbrev=False))
PARSE = PARSER.parse_args
PARSER.parse_args = lambda: copy.deepcopy(PARSE())
arguments.add_megatron_arguments = lambda parser: PARSER


def parse(question):
    ARCH[0] = question.get("arch", 9)
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(question.get("world", 1)))
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    os.environ.update(question.get("env", {}))
    sys.argv = ["pretrain_gpt.py"] + question["args"]
    args = arguments.parse_args()
    arguments.validate_args(args)
    arguments.core_transformer_config_from_args(args)
    return args


def plain(value):
    """Returns a value as JSON has it; enums and dtypes by name."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return getattr(value, "name", str(value))


def options(_):
    """Lists the actions of the parser."""
    rows = []
    for group in PARSER._action_groups:
        for a in group._group_actions:
            rows.append({
                "strings": a.option_strings, "dest": a.dest, "action": type(a).__name__, "nargs": a.nargs,
                "const": plain(a.const), "default": plain(a.default),
                "type": getattr(a.type, "__name__", "") if a.type else "",
                "choices": [plain(c) for c in a.choices] if a.choices else [], "group": group.title or "",
                "help": a.help or "",
            })
    return {"options": rows}


def memory(question):
    args = parse(question)
    args.padded_vocab_size = question["padded_vocab"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        report_theoretical_memory(args, num_microbatches=question["micro_batches"])
    text = printed.getvalue()
    mb = re.findall(r"([\d.]+) MB", text)
    return {"mb": float(mb[-1]), "text": text}


def answer(question):
    call = question.get("call", "parse")
    if call == "options":
        return options(question)
    if call == "memory":
        return memory(question)
    args = parse(question)
    return {"args": {k: plain(v) for k, v in vars(args).items()}}


driver.serve(answer)
