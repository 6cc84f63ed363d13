"""torchtitan 0.2's own parser and checks. A question has one of these:

"toml": text, "world": 64   parses the file, builds the parallel dims and the pipeline's split. The answer has the
                            parsed "config", the resolved "dims", "accumulation" and "split" (null without a pipeline).
                            With "quick": true, the command line, which is empty, is not merged: that takes most of the
                            time.
"toml": text, "args": [..]  parses the file with a command line: {"values": {key: value, ...}}
"choices": true             lists the keys that have a fixed set of values: {"choices": {key: [value, ...]}}
"keys": true                lists the keys of the configuration: {"keys": [[name, type, default], ...]}
"flavors": true             lists the models: {"flavors": [[model, flavor, {argument: value}], ...]}
"""
import dataclasses
import importlib
import json
import math
import os
import tempfile
import types
import typing

import driver  # first

import torch
from torchtitan.config import ConfigManager, JobConfig
from torchtitan.distributed.parallel_dims import ParallelDims
from torchtitan.distributed import pipeline_parallel

MODELS = ("llama3", "llama4", "qwen3", "deepseek_v3", "gpt_oss")
# The arguments that decide a model's shape.
SHAPE = set("""dim n_layers n_heads n_kv_heads vocab_size multiple_of ffn_dim_multiplier norm_eps rope_theta max_seq_len
    head_dim hidden_dim enable_weight_tying moe_enabled moe_inter_dim inter_dim n_dense_layers q_lora_rank kv_lora_rank
    qk_nope_head_dim qk_rope_head_dim v_head_dim moe_args""".split())
ROUTING = set("""num_experts num_shared_experts top_k num_expert_groups num_limited_groups score_func route_norm
    route_scale""".split())
SINGLE = ("1f1b", "gpipe", "pipelineschedulesingle")
MULTI = ("interleaved1f1b", "loopedbfs", "interleavedzerobubble", "zbvzerobubble", "dualpipev", "pipelineschedulemulti")


def parse(question):
    with tempfile.NamedTemporaryFile("w", suffix=".toml", delete=False) as f:
        f.write(question["toml"])
    args = ["--job.config_file", f.name] + question.get("args", [])
    manager = ConfigManager()
    try:
        if not question.get("quick"):
            return manager.parse_args(args)
        manager.config = manager._dict_to_dataclass(JobConfig, manager._maybe_load_toml(args))
        manager._validate_config()
        return manager.config
    finally:
        os.unlink(f.name)


def checked(question):
    """Parses a file and applies the checks of train.py and of the model's parallelize function."""
    config = parse(question)
    p, t = config.parallelism, config.training
    dims = ParallelDims(
        dp_replicate=p.data_parallel_replicate_degree, dp_shard=p.data_parallel_shard_degree,
        cp=p.context_parallel_degree, tp=p.tensor_parallel_degree, pp=p.pipeline_parallel_degree,
        ep=p.expert_parallel_degree, etp=p.expert_tensor_parallel_degree, world_size=question["world"])
    batch = dims.dp_replicate * dims.dp_shard
    total = t.global_batch_size
    if total < 0:
        total = t.local_batch_size * batch
    if total % (t.local_batch_size * batch) != 0:
        raise ValueError("global batch size must be multiple of local batch size times data-parallel degree")
    if t.seq_len % dims.seq_len_divisor != 0:
        raise ValueError("Sequence length must be divisible by the product of TP degree and 2 * CP degree")
    if not dims.fsdp_enabled and dims.dp_replicate_enabled and dims.dp_replicate != dims.world_size:
        raise ValueError("DDP has not supported > 1D parallelism")
    if dims.ep > 1 and (dims.dp_shard * dims.cp * dims.tp) % (dims.ep * dims.etp) != 0:
        raise ValueError("the sparse mesh does not divide")  # unflatten of build_mesh
    answer = {"config": dataclasses.asdict(config), "accumulation": total // (t.local_batch_size * batch),
              "dims": {k: getattr(dims, k) for k in ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep", "etp")},
              "fsdp": bool(dims.fsdp_enabled), "split": None}
    heads = question.get("kv_heads")
    if heads and heads % dims.tp != 0:
        raise ValueError("tp does not divide the K/V heads")  # DTensor, at the first forward pass
    if dims.pp > 1:
        answer["split"] = split(question, config, dims)
    return answer


def split(question, config, dims):
    """Runs pipeline_llm until it has named the modules of each chunk."""
    class Stop(Exception):
        pass

    name = config.parallelism.pipeline_parallel_schedule.lower()
    if name not in SINGLE + MULTI:
        raise ValueError("Unknown schedule name '%s'" % name)  # PyTorch's get_schedule_class
    if config.training.local_batch_size % config.parallelism.pipeline_parallel_microbatch_size != 0:
        raise ValueError("Batch size must be divisible by microbatch_size")
    single = type("PipelineScheduleSingle", (), {})
    multi = type("PipelineScheduleMulti", (), {})
    found = {}

    def stop(model, mesh, schedule, device, names):
        found["names"] = names
        raise Stop

    module = pipeline_parallel
    module.get_schedule_class = lambda n: single if n.lower() in SINGLE else multi
    module.PipelineScheduleSingle, module.PipelineScheduleMulti = single, multi
    module.pipeline_module_split = stop
    args = types.SimpleNamespace(n_layers=question["layers"])
    try:
        module.pipeline_llm(None, types.SimpleNamespace(pp=dims.pp, get_mesh=lambda n: None), config, None, args, None, None)
    except Stop:
        pass
    return found["names"]


def keys(_):
    rows = []

    def walk(cls, prefix):
        hints = typing.get_type_hints(cls)
        for f in dataclasses.fields(cls):
            kind = hints[f.name]
            if dataclasses.is_dataclass(kind):
                walk(kind, prefix + f.name + ".")
                continue
            default = f.default_factory() if f.default is dataclasses.MISSING else f.default
            rows.append([prefix + f.name, word(kind), json.dumps(default)])

    walk(JobConfig, "")
    return {"keys": rows}


def choices(_):
    found = {}

    def walk(cls, prefix):
        hints = typing.get_type_hints(cls)
        for f in dataclasses.fields(cls):
            kind = hints[f.name]
            if dataclasses.is_dataclass(kind):
                walk(kind, prefix + f.name + ".")
                continue
            for k in (kind,) + typing.get_args(kind):
                if typing.get_origin(k) is typing.Literal:
                    found[prefix + f.name] = list(typing.get_args(k))

    walk(JobConfig, "")
    return {"choices": found}


def values(question):
    found = {}

    def walk(value, prefix):
        for k, v in value.items():
            if isinstance(v, dict):
                walk(v, prefix + k + ".")
            else:
                found[prefix + k] = v

    walk(dataclasses.asdict(parse(question)), "")
    return {"values": found}


def word(kind):
    """Returns the table's word for a type: bool, int, float, str, list, dict or any."""
    args = [a for a in typing.get_args(kind) if a is not type(None)]
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        words = {word(a) for a in args}
        return words.pop() if len(words) == 1 else "float" if words == {"int", "float"} else "any"
    if origin is typing.Literal:
        return "str"
    return getattr(origin or kind, "__name__", "any")


def flavors(_):
    rows = []
    for name in MODELS:
        module = importlib.import_module("torchtitan.models." + name)
        table = next(v for k, v in vars(module).items() if isinstance(v, dict) and "debugmodel" in v)
        for flavor, args in table.items():
            plain = {k: v for k, v in dataclasses.asdict(args).items() if k in SHAPE}
            if "moe_args" in plain:
                plain["moe_args"] = {k: v for k, v in plain["moe_args"].items() if k in ROUTING}
            rows.append([name, flavor, plain])
    return {"flavors": rows}


def answer(question):
    if question.get("keys"):
        return keys(question)
    if question.get("flavors"):
        return flavors(question)
    if question.get("choices"):
        return choices(question)
    if "args" in question:
        return values(question)
    return checked(question)


driver.serve(answer)
