"""Records how transformers reads the config.json of each family: testdata/reading/FAMILY.json.

A file holds a small base configuration, what transformers' model of it does, and draws: each changes some keys (to
another value, to null, or away), in the hub's spelling and in that of transformers 5, alone and together with others. Of
each draw the file has what differs from the base, or that transformers refuses it. TestReadingEqualsTransformers in
ir/zoo/weights holds planc's reading of the same keys against it.

    python golden/reference/reading.py            # write them
    python golden/reference/reading.py --check    # make them again and compare the bytes
"""

import reference  # first: it sets what torch reads when it is imported

import copy
import dataclasses
import json
import math
import random
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import safetensors
import torch
import transformers as hf

from readingkeys import FAMILIES, Family

SEQ = 12
FOLDER = reference.TESTDATA / "reading"
LARGE = 100_000  # parameters; of larger models the shapes alone are recorded


# ---- one configuration -------------------------------------------------------------------------------


class Unclear(Exception):
    """A model does something that a fact has no form for: this script is to be mended."""


class Probe:
    """What a model does in one forward pass."""

    def __init__(self, module):
        self.module, self.attention, self.rope, self.drops, self.stds = module, [], [], [], []

    def __enter__(self):
        self.saved = {}
        self.replace(self.module, "eager_attention_forward", self.attend)
        for name in ("apply_rotary_pos_emb", "apply_rotary_pos_emb_interleave", "apply_rotary_emb"):
            self.replace(self.module, name, lambda old, name=name: self.rotate(old, name))
        self.replace(torch.nn.functional, "dropout", self.dropout)
        return self

    def replace(self, where, name, wrapper):
        old = getattr(where, name, None)
        if old is not None:
            self.saved[where, name] = old
            setattr(where, name, wrapper(old))

    def __exit__(self, *args):
        for (where, name), old in self.saved.items():
            setattr(where, name, old)

    def attend(self, old):
        def wrapped(module, query, key, value, attention_mask, *args, scaling=None, **kwargs):
            seen = torch.ones(query.shape[-2], key.shape[-2]) if attention_mask is None else attention_mask[0, 0] > -1
            scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
            if self.module.__name__.endswith("modeling_opt"):
                scale *= float(module.scaling)  # its queries were scaled before
            self.attention.append((int(seen[0].sum()), int(seen[-1].sum()), scale, kwargs.get("softcap")))
            return old(module, query, key, value, attention_mask, *args, scaling=scaling, **kwargs)

        return wrapped

    def rotate(self, old, name):
        def wrapped(q, k, *args, **kwargs):
            if name == "apply_rotary_emb":
                turn = args[0][0, 1]
                angle, size, n = turn.angle(), turn.abs(), turn.shape[-1]
            else:
                cos, sin = args[0][0, 1], args[1][0, 1]
                n = cos.shape[-1] // 2
                angle, size = torch.atan2(sin, cos)[:n], torch.hypot(sin, cos)[:n]
            pairs = "halves" if name == "apply_rotary_pos_emb" else "neighbours"
            self.rope.append({"pairs": pairs, "angles": numbers(angle), "factor": number(size[0])})
            return old(q, k, *args, **kwargs)

        return wrapped

    def dropout(self, old):
        def wrapped(input, p=0.5, training=True, inplace=False):
            if training and p > 0:
                self.drops.append(p)
            return input

        return wrapped


def number(x) -> float:
    return float(f"{float(x):.8g}")


def numbers(xs) -> list[float]:
    return [number(x) for x in xs]


def weight(name: str, shape: tuple, gain: float) -> torch.Tensor:
    """Numbers that any language makes of a name: 20 bits of splitmix64 each, between -1/2 and 1/2."""
    with np.errstate(over="ignore"):
        z = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()) << 32)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    x = (z >> np.uint64(44)).astype(np.float64) / 2**20 - 0.5
    return torch.from_numpy(x.reshape(shape) + (gain if len(shape) == 1 and name.endswith(".weight") else 0))


def fill(model, f: Family) -> None:
    with torch.no_grad():
        for p in model.parameters():
            p.normal_()  # so that saved_names can tell them apart
        names = reference.saved_names(model)
        for name, p in list(model.named_parameters()) + reference.kept(model):
            if not reference.fused(name):
                p.copy_(weight(names.get(name, name), tuple(p.shape), f.gain))
                continue
            base, _, part = name.rpartition(".")
            for e in range(p.shape[0]):
                kinds = ("gate", "up") if part == "gate_up_proj" else ("down",)
                rows = p[e].chunk(len(kinds))
                for kind, half in zip(kinds, rows):
                    half.copy_(weight(f.expert(base.removesuffix(".experts"), e, kind), tuple(half.shape), 0))


def batch(f: Family, config) -> tuple[dict, torch.Tensor]:
    n = 2
    if f.pixels:
        size = config.image_size
        x = torch.arange(n * config.num_channels * size * size, dtype=torch.float64).reshape(n, config.num_channels, size, size)
        return {"pixel_values": torch.sin(x)}, torch.arange(n) % config.num_labels
    at = torch.arange(n * SEQ).reshape(n, SEQ)
    ids, labels = (at * 7 + 3) % config.vocab_size, (at * 5 + 1) % config.vocab_size
    given = {"input_ids": ids}
    if f.types:
        given["token_type_ids"] = at // 5 % config.type_vocab_size
    else:
        given["use_cache"] = False
    return given, labels


def run(f: Family, config, folder: Path) -> dict:
    """The facts of a configuration that transformers takes."""
    config._attn_implementation = config._experts_implementation = "eager"
    drawn = []
    torch.manual_seed(0)  # of options that draw while training: OPT's layerdrop, Mixtral's jitter
    with torch.device("meta"):
        size = sum(p.numel() for p in f.model(copy.deepcopy(config)).parameters())
    if size > LARGE:
        return {"parameters": size}
    module, init = sys.modules[f.model.__module__], hf.initialization
    normal = init.normal_

    def drawing(*args, **kwargs):
        drawn.append(kwargs.get("std", 1.0))
        return normal(*args, **kwargs)

    init.normal_ = drawing
    try:
        model = f.model(config).double()
    finally:
        init.normal_ = normal
    fill(model, f)
    facts = {"parameters": size, "stds": sorted({number(x) for x in drawn})}
    model.save_pretrained(folder)
    with safetensors.safe_open(folder / "model.safetensors", "np") as file:
        tensors = sorted(f"{n} {file.get_slice(n).get_shape()}" for n in file.keys())
    facts["tensors"] = f"{zlib.crc32(chr(10).join(tensors).encode()):08x}"
    given, labels = batch(f, config)
    model.train()
    with Probe(module) as probe, torch.no_grad():
        out = model(**given)
    ce = torch.nn.functional.cross_entropy(out.logits.flatten(0, -2), labels.flatten())
    facts["loss"] = float(f"{float(ce):.12g}")
    if probe.attention:
        facts["sees"] = same([a[:2] for a in probe.attention])
        facts["scale"] = same([number(a[2]) for a in probe.attention])
        facts["softcap"] = one([a[3] or 0 for a in probe.attention])
    facts["rope"] = same(probe.rope)
    facts["drops"] = {str(p): probe.drops.count(p) for p in sorted(set(probe.drops))}
    facts |= modules(model)
    with Probe(module), torch.no_grad():  # without dropout
        shifted = {} if f.types or f.pixels else {"shift_labels": labels}
        aux = float(model(**given, labels=labels, **shifted).loss - ce)
    if abs(aux) > 1e-9:
        facts["aux"] = number(aux)
    return facts


ACTS = ("act_fn", "activation_fn", "act", "gelu_impl", "intermediate_act_fn", "transform_act_fn")
ROUTER = ("top_k", "norm_topk_prob", "routed_scaling_factor")


def modules(model) -> dict:
    """What parts of the model say of themselves."""
    eps, acts, route, scale = set(), set(), {}, 1.0
    for m in model.modules():
        if "Norm" in type(m).__name__:
            eps.add(number(getattr(m, "variance_epsilon", getattr(m, "eps", None))))
        for name in ACTS:
            act = getattr(m, name, None)
            if callable(act):
                acts.add(float(f"{float(act(torch.tensor(1.0, dtype=torch.float64))):.6f}"))
        if hasattr(m, "top_k"):
            route |= {k: getattr(m, k) for k in ROUTER if hasattr(m, k)}
        scale = float(getattr(m, "embed_scale", scale))
    out = {"eps": sorted(eps), "act": one(list(acts)), "embed_scale": number(scale)}
    cap = getattr(model.config, "final_logit_softcapping", None)
    pad = getattr(model.get_input_embeddings(), "padding_idx", None)
    return out | ({"route": route} if route else {}) | ({"logit_cap": cap} if cap else {}) | ({"padding": pad} if pad is not None else {})


def one(xs: list):
    if len(set(xs)) != 1:
        raise Unclear(f"not one of {xs}")
    return xs[0]


def same(xs: list) -> list:
    """One if all are alike, else one for each layer."""
    xs = json.loads(json.dumps(xs))
    return xs[:1] if all(x == xs[0] for x in xs) else xs


def read(f: Family, config: dict, folder: Path) -> dict:
    """The facts, or why transformers refuses the configuration."""
    try:
        c = hf.AutoConfig.for_model(f.name).__class__.from_dict(copy.deepcopy(config))
        with reference.Float64():
            return {"facts": run(f, c, folder)}
    except Unclear:
        raise
    except Exception as e:  # whatever it is: transformers takes no such file
        return {"refused": " ".join(str(e).split())[:100] or type(e).__name__}


# ---- draws -------------------------------------------------------------------------------------------


def apply(base: dict, change: dict) -> dict:
    out = {k: v for k, v in base.items() if k not in change.get("drop", [])}
    return out | change.get("set", {})


def changes(f: Family) -> list[dict]:
    """Each key by itself: away, null and each other value; then keys that concern each other, drawn together."""
    out = []
    for key, values in f.keys.items():
        if key in f.base:
            out.append({"drop": [key]})
        out += [{"set": {key: v}} for v in [None, *values] if v != f.base.get(key, "absent")]
    draw = random.Random(zlib.crc32(f.name.encode()))
    for group in f.groups:
        for _ in range(f.draws):
            change = {"set": {}, "drop": []}
            for key in group:
                values = [*f.keys[key], "absent"]
                v = draw.choice(values)
                if v != "absent":
                    change["set"][key] = v
                elif key in f.base:
                    change["drop"].append(key)
            out.append({k: v for k, v in change.items() if v})
    seen, unique = set(), []
    for c in out:
        text = json.dumps(c, sort_keys=True)
        if text not in seen and c:
            seen.add(text)
            unique.append(c)
    return unique


WRITTEN = 6  # draws of each family that are read once more, from what transformers writes of them


def written(f: Family, drawn: list[dict]) -> list[dict]:
    """What save_pretrained of transformers 5 makes of the base and of some draws that change many keys."""
    out, of = [], [{}] + sorted(drawn, key=lambda c: -len(c.get("set", {})))
    for change in of:
        try:
            text = hf.AutoConfig.for_model(f.name).__class__.from_dict(copy.deepcopy(apply(f.base, change))).to_json_string()
        except Exception:
            continue
        whole = {k: v for k, v in json.loads(text).items() if k not in ("transformers_version", "model_type")}
        if {"whole": whole} not in out:
            out.append({"whole": whole})
        if len(out) == WRITTEN:
            break
    return out


def family(f: Family, folder: Path) -> str:
    base = read(f, f.base, folder)
    if "facts" not in base:
        raise AssertionError(f"{f.name}: {base}")
    lines = []
    drawn = changes(f)
    for change in drawn + written(f, drawn):
        got = read(f, change["whole"] if "whole" in change else apply(f.base, change), folder)
        if "facts" in got:
            facts = got["facts"]
            if "loss" in facts:  # else it was too large to run
                facts = {k: v for k, v in facts.items() if v != base["facts"].get(k)} | {k: None for k in base["facts"] if k not in facts}
            got = {"facts": facts}
        lines.append(json.dumps(change | got))
    kind = hf.AutoConfig.for_model(f.name).__class__
    keys = sorted({x.name for x in dataclasses.fields(kind)} | set(kind.attribute_map))
    head = {"family": f.name, "transformers": hf.__version__, "keys": keys, "base": f.base, "facts": base["facts"]}
    text = json.dumps(head)[:-1] + ', "draws": [\n' + ",\n".join(lines) + "\n]}\n"
    refused = sum('"refused"' in x for x in lines)
    print(f"{f.name:12} {len(lines)} draws, {refused} refused", flush=True)
    return text


def main() -> None:
    check, only = "--check" in sys.argv, [a for a in sys.argv[1:] if not a.startswith("-")]
    hf.logging.set_verbosity_error()
    hf.logging.disable_progress_bar()
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    differ = []
    with tempfile.TemporaryDirectory() as tmp:
        for f in FAMILIES:
            if only and f.name not in only:
                continue
            text, path = family(f, Path(tmp)), FOLDER / f"{f.name}.json"
            if not check:
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != text:
                differ.append(path.name)
    if differ:
        sys.exit(f"these differ from those kept: {differ}")


if __name__ == "__main__":
    main()
