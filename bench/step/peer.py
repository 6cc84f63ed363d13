"""The peer of bench/step: PyTorch 2 on the CPU. Its argument is the model as JSON. Each line of stdin is a number of steps. The
answer is one line of JSON: the seconds of each step, and the peak resident bytes above an idle torch process."""
import json
import os
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

IDLE = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Block(nn.Module):
    """A GPT-2 block: one GEMM for queries, keys and values, SDPA, tanh GELU."""

    def __init__(self, c):
        super().__init__()
        e = c["hidden"]
        self.heads = c["heads"]
        self.ln1, self.ln2 = nn.LayerNorm(e), nn.LayerNorm(e)
        self.qkv, self.proj = nn.Linear(e, 3 * e), nn.Linear(e, e)
        self.up, self.down = nn.Linear(e, 4 * e), nn.Linear(4 * e, e)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(e, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, e))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(c["vocab"], c["hidden"]), nn.Embedding(c["block"], c["hidden"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.ln = nn.LayerNorm(c["hidden"])
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, labels):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for b in self.blocks:
            x = b(x)
        logits = F.linear(self.ln(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


class Llama(nn.Module):
    """Hugging Face's own implementation, with SDPA."""

    def __init__(self, c):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(LlamaConfig(
            vocab_size=c["vocab"], hidden_size=c["hidden"], intermediate_size=c["ffn"], num_hidden_layers=c["layers"],
            num_attention_heads=c["heads"], num_key_value_heads=c["kv_heads"], max_position_embeddings=c["block"],
            tie_word_embeddings=True, use_cache=False, attn_implementation="sdpa"))

    def forward(self, ids, labels):
        logits = self.model(ids).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


def trainer(c, rank):
    torch.manual_seed(1)
    torch.set_num_threads(c["threads"])
    model = Llama(c) if c["llama"] else GPT(c)
    step_model = model
    if c["ranks"] > 1:
        step_model = nn.parallel.DistributedDataParallel(model)
    if c["mode"] == "compile":
        step_model = torch.compile(step_model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    rows = c["batch"] // c["ranks"]
    g = torch.Generator().manual_seed(rank)
    bf16 = c["precision"] == "bf16"

    def step():
        ids = torch.randint(0, 256, (rows, c["block"] + 1), generator=g)
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = step_model(ids[:, :-1], ids[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        opt.step()
        return loss.item()

    return step


def serve(c, rank):
    if c["ranks"] > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
        torch.distributed.init_process_group("gloo", rank=rank, world_size=c["ranks"])
    step = trainer(c, rank)
    for _ in range(3):
        step()
    count = torch.zeros(1, dtype=torch.int64)
    while True:
        if rank == 0:
            line = sys.stdin.readline()
            count[0] = int(line) if line.strip() else 0
        if c["ranks"] > 1:
            torch.distributed.broadcast(count, 0)
        if count[0] == 0:
            return
        took = []
        for _ in range(int(count[0])):
            start = time.perf_counter()
            step()
            took.append(time.perf_counter() - start)
        if rank == 0:
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - IDLE
            print(json.dumps({"Took": took, "RSS": rss}), flush=True)


def main():
    c = json.loads(sys.argv[1])
    if c["ranks"] == 1:
        return serve(c, 0)
    import torch.multiprocessing as mp

    others = [mp.get_context("spawn").Process(target=serve, args=(c, r)) for r in range(1, c["ranks"])]
    for p in others:
        p.start()
    serve(c, 0)
    for p in others:
        p.join()


if __name__ == "__main__":
    main()
