"""Makes reference fixtures from Hugging Face models; gpt2.py, llama.py and families.py say of which.

A fixture is a config.json and a safetensors file that holds a small model's weights, a batch, and what
PyTorch computes from them: logits, loss, gradients, and a few steps of AdamW. README.md lists the tensors.

Everything is computed in float64 from weights that float32 holds exactly, so the numbers are those of the
mathematics to about 1e-15, and a reader in float32 starts from the very same model.

Run by hand, not by CI. The script checks what it writes (see `verify`) and stops when a check fails.
"""

import os

# The same bits on every run: one code path in MKL and in ATen, one thread, no look-ups on the network.
# These are read when torch is imported.
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)

import argparse
import copy
import dataclasses
import json
import math
import pathlib
import platform
import sys
import tempfile
import zlib
from typing import Callable

import numpy as np
import safetensors
import safetensors.torch
import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

HERE = pathlib.Path(__file__).resolve().parent
TESTDATA = HERE / "testdata"
MAX_BYTES = 1_000_000  # of one file
METADATA_KEY = "planc.reference"


@dataclasses.dataclass(frozen=True)
class AdamW:
    """The optimizer's settings. eps is large on purpose: GPT-2's key biases have a gradient of exactly
    zero, and with a small eps AdamW would turn the rounding noise in it into whole steps of lr."""

    steps: int = 3
    lr: float = 1e-2
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-4
    weight_decay: float = 0.1  # on tensors of two dimensions or more
    clip_grad_norm: float = 1.0


@dataclasses.dataclass(frozen=True)
class Fixture:
    name: str
    config: Callable[[], transformers.PretrainedConfig]
    model: type
    batch: int
    seq: int
    mask: Callable[[np.ndarray], None]  # zeroes the positions that the loss leaves out
    std: float = 0.2
    gain: float = 1.0  # around which the gains of norms lie; 0 where the model adds 1 itself
    inputs: str = "tokens"  # or "types": tokens and their types, or "pixels"
    flat: tuple[str, ...] = ()  # ends of the names of parameters whose gradient is zero by mathematics
    step: float = 3e-5  # of the check of the slope; a ReLU's kinks want a small one
    prepare: Callable[[torch.nn.Module], None] = lambda model: None  # what HF computes roughly, made exact
    expert: Callable[[str, int, str], str] = lambda mlp, e, kind: f"{mlp}.experts.{e}.{kind}_proj.weight"  # its name in files
    beside: Callable[[torch.nn.Module, tuple, int], torch.Tensor] | None = None  # what is trained beside the loss, of the routers' outputs and the batch's size
    matters: dict = dataclasses.field(default_factory=dict)  # options, and other values that give other logits
    optimizer: AdamW = AdamW()


# ---- precision ---------------------------------------------------------------------------------------


class Float64(TorchFunctionMode):
    """Replaces every request for float32 by float64.

    HF's models ask for float32 by name in places (Llama: RMSNorm, rotary angles, softmax), whatever the
    dtype of the model. Without this a double() model would be exact to 1e-8 only."""

    def __enter__(self):
        torch.set_default_dtype(torch.float64)  # of what is made without a dtype
        return super().__enter__()

    def __exit__(self, *args):
        torch.set_default_dtype(torch.float32)
        return super().__exit__(*args)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func == torch.Tensor.float:
            func = torch.Tensor.double
        wide = lambda x: torch.float64 if x is torch.float32 else x
        return func(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})


class OnlyFloat64(TorchDispatchMode):
    """Fails when an operation makes a floating tensor of another type: the proof that Float64 is whole."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float64:
                raise TypeError(f"{func} computed in {x.dtype}")
        return out


# ---- inputs ------------------------------------------------------------------------------------------


def rng(*key: str) -> np.random.RandomState:
    """A stream of its own for every key. RandomState's streams are frozen: numpy promises their bits."""
    return np.random.RandomState(zlib.crc32("/".join(key).encode()))


def build(f: Fixture, dtype: torch.dtype, **options) -> torch.nn.Module:
    """The model with its random weights. Every value is a float32; gains are around f.gain, the rest around
    zero, and none is trivial: a term that is forgotten or doubled changes the outputs."""
    config = f.config()
    for key, value in options.items():
        setattr(config, key, value)
    config._attn_implementation = config._experts_implementation = "eager"
    model = f.model(config).to(dtype)
    f.prepare(model)
    model.beside = f.beside
    model.train()  # as in training; all dropouts are zero
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout) and m.p != 0:
            raise ValueError("the reference has no dropout")
    with torch.no_grad():
        for name, p in model.named_parameters():
            w = rng(f.name, name).standard_normal(tuple(p.shape)) * f.std
            if is_gain(name, p):
                w += f.gain
            p.copy_(torch.from_numpy(w.astype(np.float32)).to(dtype))
        for name, x in kept(model):
            x.copy_(torch.from_numpy((rng(f.name, name).standard_normal(tuple(x.shape)) * f.std).astype(np.float32)).to(dtype))
    return model


def kept(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """What files hold and no gradient moves: what is added to experts' scores where they are chosen."""
    return [(n, x) for n, x in model.named_buffers() if n.endswith("e_score_correction_bias")]


def is_gain(name: str, p: torch.Tensor) -> bool:
    return p.dim() == 1 and name.endswith(".weight")


@dataclasses.dataclass(frozen=True)
class Batch:
    inputs: dict[str, torch.Tensor]  # by the names of the fixture's file: tokens, types, pixels
    targets: torch.Tensor  # [B,T] int64: the token after each; a true one where masked too. Of pixels [B]
    mask: torch.Tensor  # like targets, float64: 1 where the loss looks, else 0

    def to(self, dtype: torch.dtype) -> "Batch":
        inputs = {n: x.to(dtype) if x.is_floating_point() else x for n, x in self.inputs.items()}
        return dataclasses.replace(self, inputs=inputs, mask=self.mask.to(dtype))


def make_batch(f: Fixture) -> Batch:
    config = f.config()
    if f.inputs == "pixels":
        shape = (f.batch, config.num_channels, config.image_size, config.image_size)
        pixels = rng(f.name, "pixels").standard_normal(shape).astype(np.float32)
        labels = rng(f.name, "targets").randint(0, config.num_labels, size=f.batch)
        return Batch({"pixels": torch.from_numpy(pixels.astype(np.float64))}, torch.from_numpy(labels), masked(f, (f.batch,)))
    ids = rng(f.name, "tokens").randint(0, config.vocab_size, size=(f.batch, f.seq + 1))
    ids = torch.from_numpy(ids.astype(np.int64))
    b = Batch({"tokens": ids[:, :-1].contiguous()}, ids[:, 1:].contiguous(), masked(f, (f.batch, f.seq)))
    if f.inputs == "types":
        b.inputs["types"] = torch.from_numpy(rng(f.name, "types").randint(0, config.type_vocab_size, size=(f.batch, f.seq)))
    return b


def masked(f: Fixture, shape: tuple[int, ...]) -> torch.Tensor:
    mask = np.ones(shape)
    f.mask(mask)
    return torch.from_numpy(mask)


# ---- what is computed --------------------------------------------------------------------------------


# What transformers calls a batch's inputs.
ARGUMENTS = {"tokens": "input_ids", "types": "token_type_ids", "pixels": "pixel_values"}


def arguments(b: Batch) -> dict:
    given = {ARGUMENTS[n]: x for n, x in b.inputs.items()}
    return given if "pixels" in b.inputs else given | {"use_cache": False}


def forward(model: torch.nn.Module, b: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and loss = sum(mask·ce)/sum(mask) over the whole batch."""
    logits = model(**arguments(b)).logits
    ce = torch.nn.functional.cross_entropy(logits.flatten(0, -2), b.targets.flatten(), reduction="none")
    mask = b.mask.flatten()
    return logits, (mask * ce).sum() / mask.sum()


def beside(model: torch.nn.Module, b: Batch) -> torch.Tensor | float:
    """What is trained beside the loss."""
    if model.beside is None:
        return 0.0
    out = model(**arguments(b), output_router_logits=True)
    return model.beside(model, out.router_logits, b.targets.shape[0])


def gradients(model: torch.nn.Module, b: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and loss; the gradients are of the loss and of what is trained beside it."""
    model.zero_grad(set_to_none=True)
    logits, loss = forward(model, b)
    (loss + beside(model, b)).backward()
    return logits.detach(), loss.detach()


def global_norm(tensors) -> torch.Tensor:
    return torch.sqrt(sum((t.double() ** 2).sum() for t in tensors))


def decays(p: torch.Tensor) -> bool:
    """Matrices do, vectors do not; ViT's class token [1,1,n] is one."""
    return p.squeeze().dim() >= 2


def train(model: torch.nn.Module, b: Batch, o: AdamW) -> tuple[torch.Tensor, torch.Tensor]:
    """o.steps steps on one batch. Returns each step's loss, and its gradient norm before clipping."""
    params = list(model.parameters())
    opt = torch.optim.AdamW(
        [
            {"params": [p for p in params if decays(p)], "weight_decay": o.weight_decay},
            {"params": [p for p in params if not decays(p)], "weight_decay": 0.0},
        ],
        lr=o.lr,
        betas=(o.beta1, o.beta2),
        eps=o.eps,
        foreach=False,
        fused=False,
    )
    losses, norms = [], []
    for _ in range(o.steps):
        _, loss = gradients(model, b)
        norm = torch.nn.utils.clip_grad_norm_(params, o.clip_grad_norm, error_if_nonfinite=True, foreach=False)
        opt.step()
        losses.append(loss)
        norms.append(norm)
    return torch.stack(losses).double(), torch.stack(norms).double()


def saved_names(model: torch.nn.Module) -> dict[str, str]:
    """What save_pretrained calls each parameter: in memory transformers 5 has other names for some."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    names = {}
    for name, p in model.named_parameters():
        same = [n for n, x in saved.items() if x.shape == p.shape and torch.equal(x, p)]
        names[name] = name if name in same or fused(name) else same[0]
    if len(set(names.values())) != len(names):
        raise AssertionError("two parameters look alike")
    return names


def fused(name: str) -> bool:
    """Transformers 5 has the experts of a layer in one parameter; files have each for itself."""
    return name.endswith((".experts.gate_up_proj", ".experts.down_proj"))


def published(f: Fixture, out: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The fixture's tensors by the names of files: gate, up and down projection of each expert."""
    files = {}
    for name, x in out.items():
        if not fused(name):
            files[name] = x
            continue
        base, _, part = name.rpartition(".")
        for e, one in enumerate(x):
            halves = zip(("gate", "up"), one.chunk(2)) if part == "gate_up_proj" else [("down", one)]
            for kind, w in halves:
                files[f.expert(base.removesuffix(".experts"), e, kind)] = w
    return files


def compute(f: Fixture, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Every tensor of the fixture, computed in dtype."""
    model, b = build(f, dtype), make_batch(f).to(dtype)
    out = {n: x.double() if x.is_floating_point() else x for n, x in b.inputs.items()}
    out |= {"targets": b.targets, "mask": b.mask.double()}
    names = saved_names(model)
    for name, p in model.named_parameters():
        out[names[name]] = p.detach().clone()
    for name, x in kept(model):
        out[name] = x.clone()
    logits, loss = gradients(model, b)
    out["logits"], out["loss"] = logits.double(), loss.double()
    if f.beside is not None:
        with torch.no_grad():
            out["aux"] = beside(model, b).double()
    for name, p in model.named_parameters():
        out["grad." + names[name]] = p.grad.double().clone()
    out["grad_norm"] = global_norm(p.grad for p in model.parameters())

    out["steps.loss"], out["steps.grad_norm"] = train(model, b, f.optimizer)
    for name, p in model.named_parameters():
        out["final." + names[name]] = p.detach().double().clone()
    for name, x in kept(model):
        out["final." + name] = x.double().clone()
    with torch.no_grad():
        out["final_loss"] = forward(model, b)[1].double()
    return out


def compute_exact(f: Fixture) -> dict[str, torch.Tensor]:
    with Float64():
        out = compute(f, torch.float64)
    for name in weights(out):
        narrow = out[name].to(torch.float32)  # outside the mode, which would refuse
        if not torch.equal(narrow.double(), out[name]):
            raise AssertionError(f"{name} is not a float32")
        out[name] = narrow
    return out


def weights(out: dict[str, torch.Tensor]) -> list[str]:
    return [n.removeprefix("final.") for n in out if n.startswith("final.")]


# ---- checks ------------------------------------------------------------------------------------------


def verify(f: Fixture, out: dict[str, torch.Tensor]) -> None:
    """Checks the fixture against other ways to the same numbers."""
    b = Batch({n: out[n] for n in ARGUMENTS if n in out}, out["targets"], out["mask"])
    names = weights(out)

    with Float64():
        model = build(f, torch.float64)
        for name, x in list(model.named_parameters()) + list(model.named_buffers()):
            if x.is_floating_point() and x.dtype != torch.float64:
                raise AssertionError(f"{name} is {x.dtype}")
        with OnlyFloat64():
            _, loss = gradients(model, b)
        close("loss, computed again", loss, out["loss"], 0)

        # HF's own loss, from labels that carry -100 where the mask is zero.
        labels = torch.where(b.mask > 0, b.targets, -100)
        decoder = f.inputs == "tokens"
        theirs = model(**arguments(b), labels=labels, **({"shift_labels": labels} if decoder else {})).loss
        added = out["aux"] if getattr(model.config, "output_router_logits", False) else 0.0
        close("HF's loss", theirs.detach(), out["loss"] + added, 1e-14)

        # The gradient against the slope of the loss along a random direction.
        params = dict(model.named_parameters())
        saved = saved_names(model)
        dirs = {n: torch.from_numpy(rng(f.name, n, "direction").standard_normal(tuple(p.shape))) for n, p in params.items()}
        table = model.get_input_embeddings()
        for n, p in params.items():
            if getattr(table, "padding_idx", None) is not None and p is table.weight:
                dirs[n][table.padding_idx] = 0  # its gradient is not the slope: looking it up does not train it
        slope = sum((dirs[n] * out["grad." + saved[n]]).sum() for n in params)
        h = f.step

        @torch.no_grad()
        def at(k: float) -> torch.Tensor:
            moved = copy.deepcopy(model)
            for n, p in moved.named_parameters():
                p.add_(dirs[n], alpha=k * h)
            return forward(moved, b)[1] + beside(moved, b)

        measured = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
        close("slope of the loss", measured, slope, 1e-8)

        # A position sees none after it: other tokens in the last quarter leave the logits before as they are.
        if decoder:
            cut = f.seq * 3 // 4
            other = b.inputs["tokens"].clone()
            other[:, cut:] = (other[:, cut:] + 1) % model.config.vocab_size
            with torch.no_grad():
                seen = model(input_ids=other, use_cache=False).logits
            close("causality", seen[:, :cut], out["logits"][:, :cut], 1e-14)

        # Every option that the fixture is about changes what comes out.
        for key, value in f.matters.items():
            with torch.no_grad():
                d = (forward(build(f, torch.float64, **{key: value}), b)[0] - out["logits"]).abs().max().item()
            if not d > 1e-3:
                raise AssertionError(f"{key} = {value} changes the logits by {d} only")

    # AdamW in full, written out, on numpy. The gradients come from the model.
    manual_adamw(f, out, b)

    # Every parameter matters.
    for n in names:
        if "grad." + n not in out:
            continue  # none moves it
        share = out["grad." + n].norm() / out["grad_norm"]
        if f.flat and n.endswith(f.flat):
            if share > 1e-14:
                raise AssertionError(f"{n} has a gradient of {share:.1e} of the global norm; it was to have none")
        elif share < 1e-3:
            raise AssertionError(f"{n} hardly matters: its gradient is {share:.1e} of the global norm")
    if not (b.mask == 0).any() or len(set(b.mask.flatten(1).sum(1).tolist() if b.mask.dim() > 1 else b.mask.tolist())) < 2:
        raise AssertionError("the mask must leave out some positions, and not as many in each sample")


def manual_adamw(f: Fixture, out: dict[str, torch.Tensor], b: Batch) -> None:
    o = f.optimizer
    with Float64():
        model = build(f, torch.float64)
        names = saved_names(model)
        m = {n: np.zeros(tuple(p.shape)) for n, p in model.named_parameters()}
        v = copy.deepcopy(m)
        for t in range(1, o.steps + 1):
            _, loss = gradients(model, b)
            close(f"loss of step {t}", loss, out["steps.loss"][t - 1], 1e-12)
            norm = math.sqrt(sum(float((p.grad.numpy() ** 2).sum()) for p in model.parameters()))
            close(f"gradient norm of step {t}", torch.tensor(norm, dtype=torch.float64), out["steps.grad_norm"][t - 1], 1e-12)
            coef = min(1.0, o.clip_grad_norm / (norm + 1e-6))
            for n, p in model.named_parameters():
                g, w = coef * p.grad.numpy(), p.detach().numpy()
                if decays(p):
                    w = w * (1 - o.lr * o.weight_decay)
                m[n] = o.beta1 * m[n] + (1 - o.beta1) * g
                v[n] = o.beta2 * v[n] + (1 - o.beta2) * g * g
                mhat, vhat = m[n] / (1 - o.beta1**t), v[n] / (1 - o.beta2**t)
                with torch.no_grad():
                    p.copy_(torch.from_numpy(w - o.lr * mhat / (np.sqrt(vhat) + o.eps)))
        for n, p in model.named_parameters():
            close("final " + n, p.detach(), out["final." + names[n]], 1e-12)


def close(what: str, got: torch.Tensor, want: torch.Tensor, rel: float) -> None:
    err = (got - want).abs().max().item()
    if not err <= rel * want.abs().max().item():
        raise AssertionError(f"{what}: off by {err:.3e}, beyond {rel} of {want.abs().max().item():.6g}")


def deviations(f: Fixture, got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> dict[str, float]:
    """How far one computation is from another, in the measures of law 2 (README.md)."""
    rel = lambda n: ((got[n] - want[n]).norm() / want[n].norm()).item()
    floor = 1e-5 * want["grad_norm"]
    grads, finals = 0.0, 0.0
    for n in want:
        if f.flat and n.endswith(f.flat):
            continue  # nothing but rounding
        if n.startswith("grad."):
            grads = max(grads, ((got[n] - want[n]).norm() / torch.maximum(want[n].norm(), floor)).item())
        if n.startswith("final."):
            moved = (want[n] - want[n.removeprefix("final.")]).norm()
            if moved == 0 and torch.equal(got[n], want[n]):
                continue
            finals = max(finals, ((got[n] - want[n]).norm() / moved).item())
    return {
        "logits": rel("logits"),
        "loss": rel("loss"),
        "gradients": grads,
        "grad_norm": rel("grad_norm"),
        "steps.loss": ((got["steps.loss"] - want["steps.loss"]).abs() / want["steps.loss"]).max().item(),
        "steps.grad_norm": ((got["steps.grad_norm"] - want["steps.grad_norm"]).abs() / want["steps.grad_norm"]).max().item(),
        "updates": finals,
    }


# ---- files -------------------------------------------------------------------------------------------


def metadata(f: Fixture) -> dict[str, str]:
    """One key, because the order of several is not ours to choose, and the file's bytes should be."""
    about = {
        "fixture": f.name,
        "model": f.model.__name__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "safetensors": safetensors.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "init_std": f.std,
        "adamw": dataclasses.asdict(f.optimizer),
    }
    return {METADATA_KEY: json.dumps(about, sort_keys=True)}


def write(f: Fixture, out: dict[str, torch.Tensor], folder: pathlib.Path) -> list[pathlib.Path]:
    folder.mkdir(parents=True, exist_ok=True)
    config = f.config()
    config.architectures, config.dtype = [f.model.__name__], "float32"
    json_path, tensor_path = folder / f"{f.name}.config.json", folder / f"{f.name}.safetensors"
    json_path.write_text(config.to_json_string(), encoding="utf-8")  # as save_pretrained does
    safetensors.torch.save_file({n: t.contiguous() for n, t in out.items()}, tensor_path, metadata(f))
    tensor_path.chmod(0o644)

    # What was written is what was meant.
    back = type(config).from_json_file(str(json_path))
    a, b = config.to_dict(), back.to_dict()
    if a != b:
        raise AssertionError(f"{json_path.name} reads back as another config: {[k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]}")
    read = safetensors.torch.load_file(tensor_path)
    types = dict.fromkeys(("tokens", "types", "targets"), torch.int64) | dict.fromkeys(weights(out), torch.float32)
    for n, t in read.items():
        if t.dtype != types.get(n, torch.float64):
            raise AssertionError(f"{n} is {t.dtype}")
    if read.keys() != out.keys() or any(not torch.equal(read[n], out[n]) or read[n].dtype != out[n].dtype for n in out):
        raise AssertionError(f"{tensor_path.name} does not read back as written")
    for p in (json_path, tensor_path):
        if p.stat().st_size >= MAX_BYTES:
            raise AssertionError(f"{p.name} has {p.stat().st_size} bytes")
    return [json_path, tensor_path]


def main(*fixtures: Fixture) -> None:
    parser = argparse.ArgumentParser(description="Makes golden/reference/testdata.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail unless the files would come out byte for byte as they are")
    check = parser.parse_args().check

    transformers.logging.set_verbosity_error()  # it warns of GPT-2's default bos_token_id in a small vocabulary
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    same = True
    with tempfile.TemporaryDirectory() as tmp:
        for f in fixtures:
            out = compute_exact(f)
            verify(f, out)
            for p in write(f, published(f, out), pathlib.Path(tmp) if check else TESTDATA):
                note = ""
                if check:
                    kept = TESTDATA / p.name
                    equal = kept.exists() and kept.read_bytes() == p.read_bytes()
                    same, note = same and equal, "same bytes" if equal else "DIFFERS"
                print(f"{p.name:28} {p.stat().st_size:8} bytes  {note}")
            print(f"  loss {out['loss']:.6f}  steps {fmt(out['steps.loss'])} -> {out['final_loss']:.6f}  gradient norms {fmt(out['steps.grad_norm'])}")
            for what, other in (("float64 without the Float64 mode", torch.float64), ("float32", torch.float32)):
                d = deviations(f, compute(f, other), out)
                print(f"  HF in {what} is off by: " + ", ".join(f"{k} {x:.1e}" for k, x in d.items()))
    if not same:
        sys.exit("the files differ from those kept; see the README on versions")


def fmt(t: torch.Tensor) -> str:
    return "[" + " ".join(f"{x:.6f}" for x in t.tolist()) + "]"
