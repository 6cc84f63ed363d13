"""The peer of bench/gpu: a nanoGPT-style model in PyTorch 2 with autocast to bf16, SDPA, fused AdamW and torch.compile. Its argument
is a JSON configuration (peerWants in peer.go). With Batches and Weights it trains Steps steps from the given weights on the given
sequences and prints the losses. Otherwise it tries the micro-batches and prints the results (peerReady). Then it answers each line
of stdin, a number of steps, with the mean seconds of a step."""
import json
import os
import struct
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

ANSWERS = os.fdopen(os.dup(1), "w")  # output of libraries goes to stderr
os.dup2(2, 1)
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Block(nn.Module):
    """A block of GPT-2 or of Llama: one GEMM for queries, keys and values, and SDPA."""

    def __init__(self, c):
        super().__init__()
        e, self.heads, self.kv, self.llama = c["Hidden"], c["Heads"], c["KVHeads"], c["Llama"]
        self.dim = e // self.heads
        norm = RMSNorm if self.llama else nn.LayerNorm
        self.ln1, self.ln2 = norm(e), norm(e)
        self.qkv = nn.Linear(e, e + 2 * self.kv * self.dim, bias=not self.llama)
        self.proj = nn.Linear(e, e, bias=not self.llama)
        self.up = nn.Linear(e, c["FFN"] * (2 if self.llama else 1), bias=not self.llama)
        self.down = nn.Linear(c["FFN"], e, bias=not self.llama)

    def forward(self, x, cos, sin):
        b, t, e = x.shape
        q, k, v = self.qkv(self.ln1(x)).split((e, self.kv * self.dim, self.kv * self.dim), 2)
        q, k, v = (y.view(b, t, -1, self.dim).transpose(1, 2) for y in (q, k, v))
        if self.llama:
            q, k = rotated(q, cos, sin).to(v.dtype), rotated(k, cos, sin).to(v.dtype)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv < self.heads)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, e))
        h = self.up(self.ln2(x))
        if self.llama:
            gate, h = h.chunk(2, -1)
            h = F.silu(gate) * h
        else:
            h = F.gelu(h, approximate="tanh")
        return x + self.down(h)


class GPT(nn.Module):
    def __init__(self, c, pad):
        super().__init__()
        e, self.llama = c["Hidden"], c["Llama"]
        self.vocab = -(-c["Vocab"] // 64) * 64 if pad else c["Vocab"]  # nanoGPT's 50304
        self.wte = nn.Embedding(self.vocab, e)
        self.wpe = None if self.llama else nn.Embedding(max(c["Seq"], 1024) if c["Base"] else c["Seq"], e)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["Layers"]))
        self.ln = RMSNorm(e) if self.llama else nn.LayerNorm(e)
        self.head = nn.Linear(e, self.vocab, bias=False)
        if not self.llama:
            self.head.weight = self.wte.weight
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        dim = e // c["Heads"]
        angle = torch.arange(c["Seq"])[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)[None]
        self.register_buffer("cos", torch.cat((angle, angle), 1).cos())
        self.register_buffer("sin", torch.cat((angle, angle), 1).sin())

    def forward(self, ids, labels):
        x = self.wte(ids)
        if not self.llama:
            x = x + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for b in self.blocks:
            x = b(x, self.cos, self.sin)
        logits = self.head(self.ln(x))
        return F.cross_entropy(logits.view(-1, self.vocab), labels.reshape(-1))


def optimizer(model):
    """nanoGPT's rule: weight decay for tensors with two or more dims."""
    ps = list(model.parameters())
    groups = [{"params": [p for p in ps if p.dim() > 1], "weight_decay": 0.1}, {"params": [p for p in ps if p.dim() < 2], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)


class Trainer:
    def __init__(self, want, pad=True):
        torch.manual_seed(1)
        self.c, self.bf16 = want["Model"], want["Precision"] == "bf16"
        with torch.device(DEVICE):
            self.model = GPT(self.c, pad)
        self.run = torch.compile(self.model, dynamic=False) if want["Compile"] else self.model
        self.opt = optimizer(self.model)

    def step(self, ids, micro):
        """One step of the global batch in micro-batches; ids are [batch, seq+1]."""
        self.opt.zero_grad(set_to_none=True)
        total, parts = 0.0, ids.split(micro)
        for part in parts:
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=self.bf16):
                loss = self.run(part[:, :-1], part[:, 1:]) / len(parts)
            loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.opt.step()
        return total


def sequences(want):
    """Yields windows of the token file on the device, one batch after the other."""
    c = want["Model"]
    data = torch.frombuffer(bytearray(open(want["Batches"], "rb").read()), dtype=torch.uint16).to(torch.int64)
    span, at, n = c["Seq"] + 1, 0, data.numel()
    while True:
        rows = []
        for _ in range(c["Batch"]):
            if at + span > n:
                at = 0
            rows.append(data[at : at + span])
            at += span if want["Weights"] else c["Seq"]
        ids = torch.stack(rows)
        yield ids.pin_memory().to(DEVICE, non_blocking=True) if CUDA else ids


def answer(x):
    print(json.dumps(x), file=ANSWERS, flush=True)


def done():
    if CUDA:
        torch.cuda.synchronize()


def timed(trainer, batches, micro, n):
    """Returns the mean seconds of n steps. On a GPU, two events around all of them are compared, and nothing waits in between."""
    done()
    start, between = time.perf_counter(), [torch.cuda.Event(enable_timing=True) for _ in range(2)] if CUDA else []
    if CUDA:
        between[0].record()
    for _ in range(n):
        trainer.step(next(batches), micro)
    if not CUDA:
        return (time.perf_counter() - start) / n
    between[1].record()
    between[1].synchronize()
    return between[0].elapsed_time(between[1]) / 1000 / n


def attempt(trainer, batches, micro, ready, want):
    """Trains some steps with a micro-batch. Returns the mean of four after the first two, and the allocator's peak. Falls back to eager mode."""
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    tried, start = {"Micro": micro}, time.time()
    try:
        for i in range(2):
            timed(trainer, batches, micro, 1)
            if "First" not in ready:
                ready["First"] = time.time() - want["Started"]
        tried["Step"] = timed(trainer, batches, micro, 4)
    except torch.OutOfMemoryError as e:
        tried["Failed"] = str(e).split("\n")[0]
        trainer.opt.zero_grad(set_to_none=True)
        want["Started"] += time.time() - start  # the first step that fits counts
    except Exception as e:
        if trainer.run is trainer.model or "First" in ready:
            raise
        ready["Eager"] = str(e).strip()[-300:] or repr(e)
        trainer.run = trainer.model
        want["Started"] += time.time() - start
    if "Step" not in tried and "Failed" not in tried:  # outside the except block, because the exception holds tensors
        return attempt(trainer, batches, micro, ready, want)
    if CUDA:
        tried["Bytes"] = torch.cuda.max_memory_reserved()
    return tried


def serve(want):
    start, batches = time.time(), sequences(want)
    trainer = Trainer(want)
    ready = {"Tried": [], "Eager": "", "Torch": torch.__version__, "Device": torch.cuda.get_device_name() if CUDA else "cpu"}
    for micro in want["Micros"]:
        if ready["Tried"] and time.time() - start > want["Patience"]:
            break
        ready["Tried"].append(attempt(trainer, batches, micro, ready, want))
    best = min((t for t in ready["Tried"] if "Step" in t), key=lambda t: t["Step"], default=None)
    if best is None:
        sys.exit("no micro-batch fits: " + json.dumps(ready))
    ready["Micro"] = best["Micro"]
    timed(trainer, batches, best["Micro"], 1)
    answer(ready)
    for line in sys.stdin:
        answer(timed(trainer, batches, best["Micro"], int(line)))


TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F64": torch.float64}


def weights(folder):
    """Returns the tensors of a folder's safetensors files, by name without the prefix."""
    out = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        text = open(os.path.join(folder, name), "rb").read()
        size = struct.unpack("<Q", text[:8])[0]
        for key, t in json.loads(text[8 : 8 + size]).items():
            if key != "__metadata__":
                lo, hi = (8 + size + x for x in t["data_offsets"])
                out[key.removeprefix("transformer.")] = torch.frombuffer(bytearray(text[lo:hi]), dtype=TYPES[t["dtype"]]).reshape(t["shape"]).float()
    return out


def load(model, given):
    """Loads GPT-2's weights by Hugging Face's names; matrices of its Conv1D are transposed."""
    names = {"ln1": "ln_1", "qkv": "attn.c_attn", "proj": "attn.c_proj", "ln2": "ln_2", "up": "mlp.c_fc", "down": "mlp.c_proj"}
    with torch.no_grad():
        for name, p in model.named_parameters():
            words = name.split(".")
            if words[0] == "blocks":
                key = ".".join(["h", words[1], names[words[2]], words[3]])
            else:
                key = name.replace("ln.", "ln_f.") if words[0] == "ln" else name
            w = given.pop(key)
            p.copy_(w.t() if words[0] == "blocks" and w.dim() == 2 else w)
    given.pop("lm_head.weight", None)
    assert not given, list(given)


def curve(want):
    torch.backends.cuda.matmul.allow_tf32 = False
    trainer = Trainer(want, pad=False)
    load(trainer.model, weights(want["Weights"]))
    batches = sequences(want)
    losses = [trainer.step(next(batches), want["Micros"][0]) for _ in range(want["Steps"])]
    answer([float(x) for x in losses])


def main():
    want = json.loads(sys.argv[1])
    torch.set_float32_matmul_precision("highest" if want["Weights"] else "high")
    curve(want) if want["Weights"] else serve(want)


if __name__ == "__main__":
    main()
