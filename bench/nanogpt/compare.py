"""Trains nanoGPT's CPU example with planc and with PyTorch, one after the other, and compares both.

    python bench/nanogpt/compare.py --text input.txt [--planc PATH] [--steps N] [--threads N]

Both have the same text, settings and initial weights. Batches are random windows, which each side draws by itself.
The script also computes the validation loss of planc's final weights in PyTorch: it must be planc's own.
Needs torch; README.md has the results.
"""

import argparse
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, HEADS, WIDTH, SEQ, BATCH, VOCAB = 4, 4, 128, 64, 12, 128
WARMUP, LR, MIN_LR, EVERY, EVAL_BATCHES = 100, 1e-3, 1e-4, 250, 20


def read_weights(folder: pathlib.Path) -> dict[str, torch.Tensor]:
    """The tensors of a folder in Hugging Face's layout, in float32."""
    raw = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    weights = {}
    for name, t in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        flat = torch.frombuffer(bytearray(raw[8 + size + begin : 8 + size + end]), dtype=torch.float32)
        weights[name.removeprefix("transformer.")] = flat.reshape(t["shape"]).clone().requires_grad_()
    return weights


def loss_of(w: dict[str, torch.Tensor], tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean loss of GPT-2 without biases: norms before attention and MLP, GELU by tanh, a tied head."""
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), w[name + ".weight"], None, 1e-5)
    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for i in range(LAYERS):
        h = f"h.{i}."
        qkv = norm(x, h + "ln_1") @ w[h + "attn.c_attn.weight"]
        q, k, v = (y.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2) for y in qkv.split(WIDTH, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + y @ w[h + "attn.c_proj.weight"]
        up = norm(x, h + "ln_2") @ w[h + "mlp.c_fc.weight"]
        x = x + F.gelu(up, approximate="tanh") @ w[h + "mlp.c_proj.weight"]
    logits = norm(x, "ln_f") @ w["wte.weight"].T
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def windows(data: torch.Tensor, starts) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.stack([data[s + shift : s + shift + SEQ] for s in starts]) for shift in (0, 1))


@torch.no_grad()
def validate(w: dict[str, torch.Tensor], valid: torch.Tensor) -> float:
    """planc's validation loss: the first windows of the file, one after the other. The file's last may be short."""
    counted = min(len(valid) - 1, EVAL_BATCHES * BATCH * SEQ)
    whole = counted // SEQ
    total = 0.0
    for first in range(0, whole, BATCH):
        n = min(BATCH, whole - first)
        total += loss_of(w, *windows(valid, [SEQ * (first + i) for i in range(n)])).item() * n * SEQ
    if rest := counted - whole * SEQ:
        last = valid[whole * SEQ :][: rest + 1][None]
        total += loss_of(w, last[:, :-1], last[:, 1:]).item() * rest
    return total / counted


def train(w: dict[str, torch.Tensor], data: torch.Tensor, valid: torch.Tensor, steps: int):
    """Returns the losses, the validation losses by step, and the median seconds of a step."""
    matrices = [p for p in w.values() if p.dim() > 1]
    vectors = [p for p in w.values() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.99), eps=1e-8)
    draw = torch.Generator().manual_seed(1337)
    losses, valids, seconds = [], {}, []
    for step in range(1, steps + 1):
        begun = time.perf_counter()
        part = min(1.0, max(0.0, (step - WARMUP) / (steps - WARMUP)))
        rate = LR * step / WARMUP if step <= WARMUP else MIN_LR + (LR - MIN_LR) * (1 + math.cos(math.pi * part)) / 2
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(data) - SEQ, (BATCH,), generator=draw).tolist()
        loss = loss_of(w, *windows(data, starts))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begun)
        if step % EVERY == 0 or step == steps:
            valids[step] = validate(w, valid)
    return losses, valids, statistics.median(seconds)


def tokens_of(path: pathlib.Path) -> torch.Tensor:
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.int16).long()


def main() -> None:
    args = argparse.ArgumentParser()
    args.add_argument("--text", required=True, type=pathlib.Path)
    args.add_argument("--planc", default="planc")
    args.add_argument("--steps", type=int, default=2000)
    args.add_argument("--threads", type=int, default=torch.get_num_threads())
    o = args.parse_args()
    if o.steps <= WARMUP:
        sys.exit(f"--steps {o.steps}: must be above the {WARMUP} of the warm-up")
    torch.set_num_threads(o.threads)
    dir = pathlib.Path(tempfile.mkdtemp())
    run = lambda *command: subprocess.run(command, cwd=dir, check=True, capture_output=True, text=True)
    shutil.copy(HERE / "job.yaml", dir / "job.yaml")
    run(o.planc, "data", "tokenize", "--tokenizer", "char", str(o.text.resolve()), "-o", "text.bin")
    run(o.planc, "data", "split", "text.bin", "--valid", "0.1")
    run(o.planc, "compile", "job.yaml", "-o", "train", "--set", f"train.steps={o.steps}")
    run("./train", "--dir", "run", "--resume", "never", "--export", "first")
    run("./train", "--dir", "run", "--threads", str(o.threads))
    run("./train", "--dir", "run", "--export", "last")
    lines = [json.loads(line) for line in (dir / "run/metrics.jsonl").read_text().splitlines()]
    planc = [x for x in lines if "loss" in x]
    planc_valid = {x["step"]: x["valid_loss"] for x in lines if "valid_loss" in x}

    data, valid = tokens_of(dir / "text.train.bin"), tokens_of(dir / "text.valid.bin")
    losses, valids, second = train(read_weights(dir / "first"), data, valid, o.steps)
    print("step  planc loss  valid   PyTorch loss  valid")
    mean = lambda xs, step: statistics.fmean(xs[max(0, step - 20) : step])  # of the last 20 steps
    for step in sorted(valids):
        print(f"{step:5} {mean([x['loss'] for x in planc], step):11.4f} {planc_valid[step]:.4f}"
              f" {mean(losses, step):14.4f} {valids[step]:.4f}")
    again = validate(read_weights(dir / "last"), valid)
    print(f"planc's final weights in PyTorch: valid {again:.6f}, planc says {planc_valid[o.steps]:.6f}")
    planc_second = statistics.median(x["step_s"] for x in planc)
    rates = BATCH * SEQ / planc_second, BATCH * SEQ / second
    ratio = rates[0] / rates[1]
    print(f"tokens/s on {o.threads} threads: planc {rates[0]:.0f}, PyTorch {rates[1]:.0f}, ratio {ratio:.2f}")
    shutil.rmtree(dir)
    if abs(again - planc_valid[o.steps]) > 1e-4:
        sys.exit("the validation losses differ")


if __name__ == "__main__":
    main()
