"""Makes the fixtures of the other families in testdata: one or more for each, small, with the options on that the
family is about. Windows are shorter than the sequence; scaled rotary positions go past the original ones.

    python golden/reference/families.py            # write them
    python golden/reference/families.py --check    # make them again and compare the bytes
"""

import reference  # first: it sets what torch reads when it is imported

import numpy as np
import torch
import transformers as hf
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

BATCH, SEQ = 4, 12

# Sizes that most share. But in llama-padding no token is a padding token, whose embedding would not be trained.
COMMON = {"vocab_size": 37, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": None}
DECODER = COMMON | {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 32, "attention_dropout": 0.0,
                    "bos_token_id": 1, "eos_token_id": 2}
FULL, LOCAL = "full_attention", "sliding_attention"

# Biases of keys move all scores of a query alike, unless positions turn them.
KEYS = ("k_proj.bias", "key.bias")


def rope(kind: str = "default", theta: float = 10000.0, **more) -> dict:
    return {"rope_type": kind, "rope_theta": theta} | more


PLAIN = rope()


def decoder_mask(mask: np.ndarray) -> None:
    """A whole sample, one with a masked prompt, one with padding, one with holes."""
    mask[0, :3] = 0
    mask[2, 8:] = 0
    mask[3, [1, 2, 7, 10]] = 0


def bert_mask(mask: np.ndarray) -> None:
    """The loss looks at some positions only, as where words were hidden."""
    mask[:] = 0
    mask[0, [1, 5, 6]] = 1
    mask[1, [0, 11]] = 1
    mask[3, [2, 3, 4, 8, 9]] = 1


def vit_mask(mask: np.ndarray) -> None:
    """A picture without a label."""
    mask[2] = 0


def decoder(name: str, model: type, config: type, options: dict, **more) -> reference.Fixture:
    """A fixture of a decoder after Llama's manner."""
    return reference.Fixture(name, lambda: config(**(DECODER | options)), model, BATCH, SEQ, decoder_mask, **more)


def llama(name: str, parameters: dict, matters: dict = {"rope_parameters": PLAIN}, **options) -> reference.Fixture:
    return decoder(name, hf.LlamaForCausalLM, hf.LlamaConfig, {"rope_parameters": parameters, "tie_word_embeddings": False} | options,
                   matters=matters)


def opt(name: str, **options) -> reference.Fixture:
    config = lambda: hf.OPTConfig(**(COMMON | {"ffn_dim": 24, "max_position_embeddings": 14, "dropout": 0.0, "attention_dropout": 0.0} | options))
    return reference.Fixture(name, config, hf.OPTForCausalLM, BATCH, SEQ, decoder_mask, flat=KEYS, step=1e-6)


def bloom() -> hf.BloomConfig:
    """Six heads: not a power of two, so that the slopes are of two series."""
    return hf.BloomConfig(vocab_size=37, hidden_size=12, n_layer=2, n_head=6, hidden_dropout=0.0, attention_dropout=0.0, pad_token_id=None)


def exact_gelu(model: hf.BloomForCausalLM) -> None:
    """Bloom's GELU has its constants to eight digits."""
    for block in model.transformer.h:
        block.mlp.gelu_impl = torch.nn.GELU(approximate="tanh")


def neox(name: str, **options) -> reference.Fixture:
    config = lambda: hf.GPTNeoXConfig(**(COMMON | {"num_attention_heads": 2, "intermediate_size": 40, "max_position_embeddings": 16,
        "hidden_dropout": 0.0, "attention_dropout": 0.0, "rope_parameters": rope(partial_rotary_factor=0.5)} | options))
    return reference.Fixture(name, config, hf.GPTNeoXForCausalLM, BATCH, SEQ, decoder_mask,
                             matters={"rope_parameters": rope(partial_rotary_factor=1.0)})


def bert(**options) -> hf.BertConfig:
    return hf.BertConfig(**COMMON, intermediate_size=24, max_position_embeddings=14, type_vocab_size=2, hidden_dropout_prob=0.0,
                         attention_probs_dropout_prob=0.0, **options)


def one_bias(model: hf.BertForMaskedLM) -> None:
    """Of an untied BERT the logits' bias is the decoder's; the other one is read by nothing and has no gradient."""
    del model.cls.predictions.bias


def vit() -> hf.ViTConfig:
    """Nine patches of 4 × 4 in three colours; seven classes."""
    return hf.ViTConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4,
                        num_channels=3, num_labels=7, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


EXPERTS = {"num_experts_per_tok": 2, "rope_parameters": PLAIN}


def moe(name: str, model: type, config: type, options: dict, **more) -> reference.Fixture:
    """With experts. Where a token changes its choice the loss jumps, so the slope is taken nearby."""
    return decoder(name, model, config, EXPERTS | options, step=1e-6, **more)


def mixtral_expert(mlp: str, e: int, kind: str) -> str:
    """As the hub's files call it."""
    return f"{mlp.removesuffix('.mlp')}.block_sparse_moe.experts.{e}.{ {'gate': 'w1', 'up': 'w3', 'down': 'w2'}[kind] }.weight"


DEEPSEEK = {"num_hidden_layers": 3, "num_key_value_heads": 4, "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 3,
            "moe_intermediate_size": 8, "kv_lora_rank": 10, "q_lora_rank": 12, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5,
            "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5}
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=8, mscale=0.7, mscale_all_dim=1.3)


def transformers_balance(model: hf.PreTrainedModel, scores: tuple, batch: int) -> torch.Tensor:
    """The balance loss as config.json asks for it."""
    c = model.config
    return c.router_aux_loss_coef * load_balancing_loss_func(scores, c.num_local_experts, c.num_experts_per_tok)


BALANCE, Z = 0.6, 0.05


def sequence_balance(model: hf.PreTrainedModel, scores: tuple, batch: int) -> torch.Tensor:
    """A balance loss of each layer and sequence, 1 where balanced, and a z loss; train.experts of planc."""
    c, total = model.config, 0.0
    for layer in scores:
        for one in layer.chunk(batch):
            total += BALANCE * load_balancing_loss_func((one,), c.num_experts, c.num_experts_per_tok) / c.num_experts_per_tok
            total += Z * one.logsumexp(-1).square().mean()
    return total / batch


LONGROPE = rope("longrope", short_factor=[1.0, 1.1, 1.3], long_factor=[1.5, 2.0, 4.5])

GEMMA2 = {"num_key_value_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 24, "sliding_window": 5, "attn_logit_softcapping": 2.0,
          "final_logit_softcapping": 3.0, "rope_parameters": PLAIN}
GEMMA3 = {"num_key_value_heads": 1, "head_dim": 6, "query_pre_attn_scalar": 9, "sliding_window": 4, "num_hidden_layers": 3,
          "layer_types": [LOCAL, LOCAL, FULL], "rope_parameters": {FULL: rope("linear", 50000.0, factor=2.0), LOCAL: rope(theta=100.0)}}

FIXTURES = [
    opt("opt-tiny", word_embed_proj_dim=16),
    opt("opt-post", word_embed_proj_dim=8, do_layer_norm_before=False),
    reference.Fixture("bloom-tiny", bloom, hf.BloomForCausalLM, BATCH, SEQ, decoder_mask, prepare=exact_gelu),
    neox("neox-tiny"),
    neox("neox-serial", use_parallel_residual=False, attention_bias=False),
    llama("llama-llama3", rope("llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, theta=50.0)),
    llama("llama-linear", rope("linear", factor=2.5), tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    llama("llama-padding", PLAIN, pad_token_id=5, tie_word_embeddings=True, matters={}),
    llama("llama-yarn", rope("yarn", factor=4.0, original_max_position_embeddings=8), head_dim=8),
    llama("llama-dynamic", rope("dynamic", factor=2.0), max_position_embeddings=8),
    decoder("mistral-tiny", hf.MistralForCausalLM, hf.MistralConfig, {"sliding_window": 5, "head_dim": 6, "rope_parameters": PLAIN},
            matters={"sliding_window": None}),
    decoder("qwen2-tiny", hf.Qwen2ForCausalLM, hf.Qwen2Config, {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1,
            "num_hidden_layers": 3, "tie_word_embeddings": True, "rope_parameters": PLAIN}, matters={"layer_types": [FULL] * 3}),
    decoder("qwen3-tiny", hf.Qwen3ForCausalLM, hf.Qwen3Config, {"head_dim": 6, "rope_parameters": rope(theta=1e6)}),
    decoder("phi3-tiny", hf.Phi3ForCausalLM, hf.Phi3Config, {"hidden_size": 32, "sliding_window": 6, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "original_max_position_embeddings": 8, "rope_parameters": LONGROPE | {"partial_rotary_factor": 0.75}},
            matters={"sliding_window": None, "rope_parameters": PLAIN | {"partial_rotary_factor": 0.75}}),
    decoder("gemma2-tiny", hf.Gemma2ForCausalLM, hf.Gemma2Config, GEMMA2, gain=0.0,
            matters={"attn_logit_softcapping": None, "final_logit_softcapping": None, "query_pre_attn_scalar": 6, "layer_types": [FULL] * 2}),
    decoder("gemma3-tiny", hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, GEMMA3, gain=0.0,
            matters={"layer_types": [LOCAL] * 3, "rope_parameters": {FULL: PLAIN, LOCAL: PLAIN}, "sliding_window": 32}),
    moe("mixtral-tiny", hf.MixtralForCausalLM, hf.MixtralConfig, {"num_local_experts": 4}, expert=mixtral_expert, matters={"num_experts_per_tok": 1}),
    moe("qwen2moe-tiny", hf.Qwen2MoeForCausalLM, hf.Qwen2MoeConfig, {"num_experts_per_tok": 3, "num_experts": 4, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 20},
        matters={"norm_topk_prob": True}),
    moe("qwen3moe-tiny", hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, {"num_local_experts": 8, "moe_intermediate_size": 8, "norm_topk_prob": True, "head_dim": 6},
        matters={"norm_topk_prob": False}),
    moe("deepseekv2-tiny", hf.DeepseekV2ForCausalLM, hf.DeepseekV2Config, DEEPSEEK | {"topk_method": "group_limited_greedy", "rope_parameters": YARN},
        matters={"topk_method": "greedy", "rope_parameters": PLAIN, "routed_scaling_factor": 1.0}),
    moe("deepseekv2-lite", hf.DeepseekV2ForCausalLM, hf.DeepseekV2Config, DEEPSEEK | {"q_lora_rank": None, "n_group": None, "topk_group": None, "n_shared_experts": 1},
        matters={"num_experts_per_tok": 2}),
    moe("deepseekv3-tiny", hf.DeepseekV3ForCausalLM, hf.DeepseekV3Config, DEEPSEEK | {"rope_parameters": YARN, "num_mtp_layers": 0},
        matters={"topk_group": 4, "rope_parameters": PLAIN, "norm_topk_prob": False, "rope_interleave": False}),
    moe("deepseekv3-halves", hf.DeepseekV3ForCausalLM, hf.DeepseekV3Config, DEEPSEEK | {"rope_interleave": False, "norm_topk_prob": False,
        "first_k_dense_replace": 0, "num_hidden_layers": 2, "n_group": 1, "topk_group": 1, "num_mtp_layers": 0, "rms_norm_eps": 1e-5}, matters={"rope_interleave": True}),
    moe("mixtral-balance", hf.MixtralForCausalLM, hf.MixtralConfig, {"num_local_experts": 4, "num_hidden_layers": 1, "output_router_logits": True,
        "router_aux_loss_coef": 0.5}, expert=mixtral_expert, beside=transformers_balance),
    moe("qwen3moe-balance", hf.Qwen3MoeForCausalLM, hf.Qwen3MoeConfig, {"num_local_experts": 8, "moe_intermediate_size": 8, "norm_topk_prob": False,
        "head_dim": 6}, beside=sequence_balance),
    reference.Fixture("bert-tiny", bert, hf.BertForMaskedLM, BATCH, SEQ, bert_mask, inputs="types", flat=KEYS),
    reference.Fixture("bert-untied", lambda: bert(tie_word_embeddings=False), hf.BertForMaskedLM, BATCH, SEQ, bert_mask, inputs="types", flat=KEYS,
                      prepare=one_bias),
    reference.Fixture("vit-tiny", vit, hf.ViTForImageClassification, BATCH, 10, vit_mask, inputs="pixels", flat=KEYS),
]

if __name__ == "__main__":
    reference.main(*FIXTURES)
