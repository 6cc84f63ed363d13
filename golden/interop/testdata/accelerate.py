"""Accelerate's own parser of its configuration file. A question is {"text": FILE}:

"call": "parse" (default) does what `accelerate launch --config_file FILE` does before it starts processes. It loads the
file, merges it with the defaults of the command line, makes the environment of the processes, and makes the plugins
that read this environment. The answer holds what planc reads: {"config": {...}}.
"call": "keys" lists the keys that the file may have: {"version": ..., "keys": [{"key", "type", "default"}]}.
"""
import dataclasses
import importlib.metadata
import os
import tempfile
import types
import typing

import driver  # first

VERSIONS = {"transformers": "5.23.0"}  # the plugins ask for it
STUBBED = importlib.metadata.version
importlib.metadata.version = lambda name: VERSIONS.get(name) or STUBBED(name)

from accelerate.commands import launch
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.parallelism_config import ParallelismConfig
from accelerate.utils import launch as environment

PREFIXES = {"fsdp_config": "fsdp_", "parallelism_config": "parallelism_config_", "megatron_lm_config": "megatron_lm_",
            "deepspeed_config": "", "fp8_config": "fp8_", "dynamo_config": "dynamo_"}
PARSER = launch.launch_command_parser()
CLEAN = dict(os.environ)


def restore(env):
    os.environ.clear()
    os.environ.update(env)


def sizes(env, args, kind):
    """Makes a ParallelismConfig from the environment and validates it, as a process does."""
    if env.get("ACCELERATE_USE_PARALLELISM_CONFIG") != "true":
        return {}
    restore(env)
    c = ParallelismConfig()
    c._validate_accelerator(types.SimpleNamespace(
        multi_device=args.num_processes > 1, num_processes=args.num_processes, distributed_type=kind,
        is_fsdp2=args.use_fsdp and str(args.fsdp_version) == "2", is_main_process=False))
    return {k: getattr(c, k) for k in ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size")}


def parse(question):
    restore(CLEAN)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as f:
        f.write(question["text"])
    try:
        loaded = load_config_from_file(f.name)
        args = PARSER.parse_args(["--config_file", f.name, "train.py"])
        args, _, _ = launch._validate_launch_command(args)
        env = environment.prepare_multi_gpu_env(args)
    finally:
        os.unlink(f.name)
    try:
        return {"config": {
            "distributed_type": getattr(loaded.distributed_type, "value", loaded.distributed_type),
            "num_processes": args.num_processes,
            "num_machines": args.num_machines,
            "mixed_precision": str(args.mixed_precision or "no"),
            "fsdp": {k: str(v) for k, v in loaded.fsdp_config.items()},
            "deepspeed": {k: str(v) for k, v in loaded.deepspeed_config.items()},
            "megatron": {k: str(v) for k, v in loaded.megatron_lm_config.items()},
            "sizes": sizes(env, args, loaded.distributed_type),
            "env": {k: v for k, v in env.items() if CLEAN.get(k) != v},
        }}
    finally:
        restore(CLEAN)


def kind(annotation):
    if typing.get_origin(annotation) is list:
        return "list"
    options = [a for a in typing.get_args(annotation) if a is not type(None)] or [annotation]
    return options[0].__name__ if options[0] in (bool, int, float, str, dict, list) else "any"


def plain(value):
    return value if value is None or isinstance(value, (bool, int, float, str)) else ""


def keys():
    """Lists the fields of the file's dataclass, and the options of the command line with a section's prefix."""
    rows = []
    for f in dataclasses.fields(ClusterConfig):
        default = None if f.default is dataclasses.MISSING else f.default
        # Its own questionnaire writes downcast_bf16: 'no', whatever the type in the source is.
        type_name = "any" if f.name == "downcast_bf16" else kind(f.type)
        rows.append({"key": f.name, "type": type_name, "default": plain(default)})
    for action in PARSER._actions:
        for section, prefix in PREFIXES.items():
            title = action.container.title or ""
            if section == "deepspeed_config":
                matches = "DeepSpeed" in title
            else:
                matches = action.dest.startswith(prefix)
            if matches:
                is_flag = type(action).__name__ == "_StoreTrueAction"
                name = "bool" if is_flag else getattr(action.type, "__name__", "str")
                rows.append({"key": section + "." + action.dest, "type": name if name in ("bool", "int", "float", "str")
                             else "any", "default": plain(action.default)})
    return {"version": importlib.metadata.version("accelerate"), "keys": sorted(rows, key=lambda r: r["key"])}


def answer(question):
    return keys() if question.get("call") == "keys" else parse(question)


driver.serve(answer)
