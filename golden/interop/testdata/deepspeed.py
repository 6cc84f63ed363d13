"""DeepSpeed's own parser of ds_config.json. A question is {"text": FILE, "dp": 8}:

"call": "parse" (default) makes a DeepSpeedConfig. The answer holds what planc reads: {"config": {...}}.
"call": "estimate" asks the estimators of model states: {"bytes": ...} of a GPU, from "params", "stage" and "gpus".
"call": "read" reads a text as the file is read: {"read": {...}}.
"call": "keys" lists the keys that the parser knows: {"version": ..., "keys": [{"key", "type", "default"}]}.
"""
import importlib.metadata
import io
import os
import tempfile
import typing

import driver  # first

import hjson
import torch
import pydantic
from deepspeed.runtime import config as ds
from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
from deepspeed.runtime.zero import stage3, stage_1_and_2
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config


ds.dist.get_rank = lambda: 0  # without it, the parser takes the world for one rank


class Ranks:
    def __init__(self, dp):
        self.dp = dp

    def get_data_parallel_world_size(self):
        return self.dp


def parse(question):
    """Reads the file from disk, as a launch does."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
        f.write(question["text"])
    try:
        return ds.DeepSpeedConfig(f.name, mpu=Ranks(question.get("dp", 1)))
    finally:
        os.unlink(f.name)


def device(offload):
    return str(getattr(offload, "device", "none")) if offload else "none"


def answer(question):
    if question.get("call") == "keys":
        return keys()
    if question.get("call") == "read":
        pairs = ds.dict_raise_error_on_duplicate_keys
        return {"read": hjson.load(io.StringIO(question["text"]), object_pairs_hook=pairs)}
    if question.get("call") == "estimate":
        return estimate(question)
    c = parse(question)
    zero, ep = c.zero_config, c.expert_parallel_config
    return {"config": {
        "train_batch_size": c.train_batch_size,
        "train_micro_batch_size_per_gpu": c.train_micro_batch_size_per_gpu,
        "gradient_accumulation_steps": c.gradient_accumulation_steps,
        "gradient_clipping": c.gradient_clipping,
        "stage": int(zero.stage),
        "offload_optimizer": device(zero.offload_optimizer),
        "offload_param": device(zero.offload_param),
        "hpz": zero.zero_hpz_partition_size,
        "bf16": c.bfloat16_config.enabled,
        "fp16": c.float16_config.enabled,
        "grad_accum_dtype": c.grad_accum_dtype or "",
        "tp": c.tensor_parallel_config.autotp_size,
        "cp": int(c._param_dict.get("sequence_parallel_size", 1)),
        "ep": ep.autoep_size if ep.enabled else 1,
        "etp": ep.expert_tensor_parallel_size if ep.enabled else 1,
        "partition_activations": bool(c.activation_checkpointing_config.partition_activations),
        "optimizer": c.optimizer_name or "",
        "scheduler": c.scheduler_name or "",
    }}


def estimate(question):
    """Asks for all GPUs as one node: the estimators use nodes only for memory of the host."""
    params, gpus = question["params"], question["gpus"]
    if question["stage"] == 3:
        host, gpu, _ = stage3.estimate_zero3_model_states_mem_needs(params, question["largest"], gpus, 1, False, False)
    else:
        host, gpu = stage_1_and_2.estimate_zero2_model_states_mem_needs(params, gpus, 1, False)
    return {"bytes": float(gpu)}


class Recorder(dict):
    """A dict that notes each key that the parser asks for."""

    def __init__(self, asked, path="", *args):
        super().__init__(*args)
        self.asked, self.path = asked, path

    def note(self, key):
        if isinstance(key, str):
            self.asked.setdefault(self.path + key)

    def get(self, key, default=None):
        self.note(key)
        return super().get(key, default)

    def __contains__(self, key):
        self.note(key)
        return super().__contains__(key)

    def __getitem__(self, key):
        self.note(key)
        return super().__getitem__(key)

    def keys(self):
        return self

    def __copy__(self):
        return self


# Sections that the parser reads key by key, with the contents that make it read on.
SECTIONS = {
    "activation_checkpointing": {}, "data_types": {}, "pipeline": {}, "expert_parallel": {"enabled": True},
    "optimizer": {"type": "Adam", "params": {}}, "scheduler": {"type": "WarmupLR", "params": {}},
    "torch_autocast": {"enabled": True, "dtype": "bfloat16"}, "flops_profiler": {"enabled": True},
    "checkpoint": {"parallel_write": {}}, "data_efficiency": {"enabled": True}, "aio": {}, "autotuning": {},
    "comms_logger": {},
}


def plain(value):
    if isinstance(value, torch.dtype):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(getattr(value, "value", ""))


def kind(annotation):
    """Returns the JSON type of a field's annotation."""
    options = [a for a in typing.get_args(annotation) if a is not type(None)]
    origin = typing.get_origin(annotation)
    if origin is typing.Union and len(options) == 1:
        return kind(options[0])
    if origin is typing.Literal:
        return "str"
    for python, name in ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"), (dict, "dict"), (list, "list")):
        if origin is python or isinstance(annotation, type) and issubclass(annotation, python):
            return name
    return "any"


def fields(model, prefix):
    """Lists the fields of a pydantic model under the names that users write."""
    for name, field in [(n, f) for python, f in model.model_fields.items() for n in sorted({python, f.alias or python})]:
        key = prefix + name
        options = [a for a in typing.get_args(field.annotation) or [field.annotation] if isinstance(a, type)]
        nested = [a for a in options if issubclass(a, pydantic.BaseModel)]
        if nested and nested[0].__name__ != "ZenFlowConfig":
            yield {"key": key, "type": "dict", "default": ""}
            yield from fields(nested[0], key + ".")
            continue
        yield {"key": key, "type": kind(field.annotation), "default": plain(field.get_default(call_default_factory=False))
               if not field.default_factory else ""}


def keys():
    asked = {}
    text = Recorder(asked)
    for name, contents in SECTIONS.items():
        inner = {k: Recorder(asked, name + "." + k + ".", v) if isinstance(v, dict) else v for k, v in contents.items()}
        dict.__setitem__(text, name, Recorder(asked, name + ".", inner))
    dict.update(text, train_batch_size=1, train_micro_batch_size_per_gpu=1, gradient_accumulation_steps=1)
    ds.DeepSpeedConfig(text, mpu=Ranks(1))
    models = {"zero_optimization": DeepSpeedZeroConfig, "bf16": DeepSpeedBF16Config, "fp16": DeepSpeedFP16Config,
              "tensor_parallel": TPTrainingConfig}
    rows = {key: {"key": key, "type": "", "default": ""} for key in asked}
    for name, model in models.items():
        rows[name] = {"key": name, "type": "dict", "default": ""}
        rows.update({row["key"]: row for row in fields(model, name + ".")})
    for name in SECTIONS:
        rows[name] = {"key": name, "type": "dict", "default": ""}
    removed = {"": ds._REMOVED_TOP_LEVEL_CONFIG_KEYS, "zero_optimization.": ds._REMOVED_ZERO_CONFIG_KEYS}
    for prefix, names in removed.items():
        rows.update({prefix + n: {"key": prefix + n, "type": "removed", "default": ""} for n in names})
    return {"version": importlib.metadata.version("deepspeed"), "keys": [rows[key] for key in sorted(rows)]}


driver.serve(answer)
