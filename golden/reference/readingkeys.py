"""The families whose config.json reading.py draws: a small base, and for each key the values that are tried."""

import dataclasses
from typing import Callable

import transformers as hf

FULL, LOCAL = "full_attention", "sliding_attention"


@dataclasses.dataclass(frozen=True)
class Family:
    name: str
    model: type
    base: dict
    keys: dict  # of each key the values that are tried, besides null and its absence
    groups: list  # keys that are drawn together
    draws: int = 10  # of each group
    gain: float = 1.0  # around which the gains of norms lie
    types: bool = False  # tokens have types
    pixels: bool = False
    expert: Callable = lambda mlp, e, kind: f"{mlp}.experts.{e}.{kind}_proj.weight"


ACTS = ["silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "swish", "quick_gelu"]
LONG = {"short_factor": [1.0, 1.5], "long_factor": [2.0, 4.0]}
YARN = {"factor": 4.0, "original_max_position_embeddings": 8}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
SCALINGS = [
    {}, {"rope_type": "default"}, {"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 2.5}, {"type": "dynamic", "factor": 2.0},
    LLAMA3, {k: v for k, v in LLAMA3.items() if k != "original_max_position_embeddings"}, {"type": "yarn"} | YARN, {"rope_type": "yarn"} | YARN,
    {"rope_type": "yarn", "factor": 4.0}, {"rope_type": "yarn", "original_max_position_embeddings": 8},
    {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 8},
    {"rope_type": "yarn", "attention_factor": 1.5} | YARN, {"rope_type": "yarn", "beta_fast": 16, "beta_slow": 2} | YARN,
    {"rope_type": "yarn", "mscale": 0.7, "mscale_all_dim": 1.3} | YARN, {"rope_type": "yarn", "mscale": 0.7} | YARN,
    {"rope_type": "yarn", "truncate": False} | YARN, {"rope_type": "longrope", "original_max_position_embeddings": 8} | LONG,
    {"type": "longrope", "factor": 4.0} | LONG, {"type": "longrope", "factor": 4.0, "original_max_position_embeddings": 8, "attention_factor": 1.25} | LONG,
    {"type": "su"} | LONG, {"rope_type": "yarn"} | LONG, {"rope_type": "longrope", "factor": 4.0, "short_factor": [1.0, 1.5]},
    {"factor": 2.0}, {"type": "linear", "rope_type": "dynamic", "factor": 2.0}, {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0},
    {"rope_type": "default", "partial_rotary_factor": 0.5}, {"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}, {"rope_type": "linear"},
    {"rope_type": "dynamic"}, {"rope_type": "proportional", "factor": 2.0}, {"rope_type": "mrope"},
    {"rope_type": "yarn", "attention_factor": None} | YARN, {"rope_type": "yarn", "truncate": None} | YARN, {"rope_type": "linear", "factor": None},
    {"rope_type": "default", "rope_theta": None},
]
PARAMETERS = [{"rope_type": "default", "rope_theta": 200.0}, {"rope_theta": 200.0}, {"rope_type": "linear", "factor": 2.0, "rope_theta": 200.0},
              {"rope_type": "yarn", "rope_theta": 200.0} | YARN, {"rope_type": "longrope", "rope_theta": 200.0, "original_max_position_embeddings": 8} | LONG,
              {"rope_type": "default"}, {"rope_type": "default", "rope_theta": 200.0, "partial_rotary_factor": 0.5}]
TYPES = [[FULL, LOCAL, FULL], [LOCAL] * 3, [FULL] * 3, [LOCAL, FULL], []]

SHAPES = {"vocab_size": [41], "hidden_size": [24], "num_hidden_layers": [2], "num_attention_heads": [2], "initializer_range": [0.05]}
BASE = {"vocab_size": 37, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}
TIE = {"tie_word_embeddings": [True, False]}
PAD = {"pad_token_id": [0, 5]}
ROPE = {"rope_theta": [500.0], "rope_scaling": SCALINGS, "rope_parameters": PARAMETERS, "max_position_embeddings": [8, 64], "partial_rotary_factor": [0.5]}
DECODER = BASE | {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 32, "rope_theta": 1000.0, "rms_norm_eps": 1e-5}
DECODER_KEYS = SHAPES | TIE | PAD | ROPE | {"intermediate_size": [20], "num_key_value_heads": [1, 4], "rms_norm_eps": [1e-3], "attention_dropout": [0.25]}
ACT = {"hidden_act": ACTS}
HEAD_DIM = {"head_dim": [4, 6, 8]}
WINDOW = {"sliding_window": [1, 4, 100, 0]}
USE = {"use_sliding_window": [True, False], "max_window_layers": [0, 1, 2, 5], "layer_types": TYPES}
ROPES = ["rope_theta", "rope_scaling", "rope_parameters", "max_position_embeddings"]
WINDOWS = ["use_sliding_window", "sliding_window", "max_window_layers", "layer_types"]
HEADS = ["head_dim", "num_key_value_heads", "num_attention_heads", "hidden_size"]
BIAS = {"attention_bias": [True, False]}
EXPERTS = {"num_experts": [3], "num_local_experts": [5], "num_experts_per_tok": [1, 3], "moe_intermediate_size": [6], "norm_topk_prob": [True, False],
           "decoder_sparse_step": [2], "mlp_only_layers": [[], [0]], "output_router_logits": [True, False], "router_aux_loss_coef": [0.5]}
ROUTES = ["num_experts", "num_local_experts", "num_experts_per_tok", "norm_topk_prob"]


def decoder(name: str, model: type, base: dict, keys: dict, groups: list, **more) -> Family:
    return Family(name, model, DECODER | base, DECODER_KEYS | keys, [ROPES, ["rope_theta", "rope_parameters"], *groups], **more)


def mixtral_expert(mlp: str, e: int, kind: str) -> str:
    return f"{mlp.removesuffix('.mlp')}.block_sparse_moe.experts.{e}.{ {'gate': 'w1', 'up': 'w3', 'down': 'w2'}[kind] }.weight"


MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
GEMMA = {"head_dim": 4, "query_pre_attn_scalar": 16, "sliding_window": 5}
GEMMA_KEYS = HEAD_DIM | WINDOW | BIAS | {"hidden_activation": ACTS, "hidden_act": ["gelu", "gelu_pytorch_tanh"], "query_pre_attn_scalar": [9, 4],
    "layer_types": TYPES, "final_logit_softcapping": [3.0], "attn_logit_softcapping": [2.0], "use_bidirectional_attention": [True, False]}
NESTED = [{FULL: {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0}, LOCAL: {"rope_type": "default", "rope_theta": 100.0}},
          {FULL: {"rope_type": "default"}, LOCAL: {"rope_type": "default"}}, {FULL: {"rope_type": "default", "rope_theta": 300.0}},
          {LOCAL: {"rope_type": "default", "rope_theta": 100.0}}, {FULL: {"rope_type": "default"}, LOCAL: {"rope_type": "linear", "factor": 2.0}}]
LATENT = {"num_key_value_heads": 4, "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 8, "kv_lora_rank": 10, "q_lora_rank": 12,
          "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2}
LATENT_KEYS = ACT | BIAS | {"num_key_value_heads": [4, 2], "n_routed_experts": [4], "num_experts_per_tok": [1], "moe_intermediate_size": [6], "kv_lora_rank": [8],
    "q_lora_rank": [8], "qk_nope_head_dim": [4], "qk_rope_head_dim": [8], "v_head_dim": [4], "n_shared_experts": [2], "first_k_dense_replace": [0, 2, 3],
    "n_group": [1, 2, 8], "topk_group": [1, 4], "routed_scaling_factor": [1.5], "topk_method": ["greedy", "group_limited_greedy", "noaux_tc"],
    "norm_topk_prob": [True, False], "scoring_func": ["softmax", "sigmoid"], "head_dim": [4, 10], "qk_head_dim": [10], "moe_layer_freq": [1, 2],
    "output_router_logits": [True, False], "num_local_experts": [4], "num_experts": [4], "aux_loss_alpha": [0.1], "seq_aux": [True], "mlp_bias": [True, False]}
GROUPS = ["n_group", "topk_group", "topk_method", "num_experts_per_tok", "norm_topk_prob"]
OLD = BASE | {"max_position_embeddings": 16}

FAMILIES = [
    Family("gpt2", hf.GPT2LMHeadModel, {"vocab_size": 37, "n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 16, "resid_pdrop": 0.125, "embd_pdrop": 0.25, "attn_pdrop": 0.5},
        TIE | PAD | {"vocab_size": [41], "n_embd": [24], "n_layer": [2], "n_head": [2], "n_positions": [20], "n_ctx": [20], "n_inner": [20], "activation_function": ACTS,
            "resid_pdrop": [0.0], "embd_pdrop": [0.0], "attn_pdrop": [0.0], "layer_norm_epsilon": [1e-3], "initializer_range": [0.05], "scale_attn_weights": [False, True],
            "scale_attn_by_inverse_layer_idx": [True, False], "reorder_and_upcast_attn": [True, False], "add_cross_attention": [True, False], "hidden_size": [24],
            "num_hidden_layers": [2], "num_attention_heads": [2], "max_position_embeddings": [20], "is_decoder": [True]},
        [["n_embd", "n_head", "n_inner", "hidden_size"], ["n_layer", "num_hidden_layers"]]),
    Family("opt", hf.OPTForCausalLM, OLD | {"ffn_dim": 24, "word_embed_proj_dim": 16, "dropout": 0.125, "attention_dropout": 0.25, "pad_token_id": None},
        SHAPES | TIE | PAD | {"initializer_range": [0.05], "ffn_dim": [20], "max_position_embeddings": [20], "do_layer_norm_before": [True, False], "_remove_final_layer_norm": [True, False],
            "word_embed_proj_dim": [8, 16], "dropout": [0.0], "attention_dropout": [0.0], "activation_function": ACTS, "layerdrop": [0.5], "init_std": [0.05],
            "enable_bias": [False, True], "layer_norm_elementwise_affine": [False, True], "activation_dropout": [0.5], "layer_norm_eps": [1e-3]},
        [["word_embed_proj_dim", "tie_word_embeddings", "do_layer_norm_before", "hidden_size"]]),
    Family("bloom", hf.BloomForCausalLM, {"vocab_size": 37, "hidden_size": 16, "n_layer": 2, "n_head": 4, "hidden_dropout": 0.125, "attention_dropout": 0.25},
        TIE | PAD | {"vocab_size": [41], "hidden_size": [24], "n_embed": [24], "n_layer": [3], "num_hidden_layers": [3], "n_head": [2], "num_attention_heads": [2],
            "layer_norm_epsilon": [1e-3], "initializer_range": [0.05], "apply_residual_connection_post_layernorm": [True, False], "hidden_dropout": [0.0],
            "attention_dropout": [0.0], "seq_length": [20], "slow_but_exact": [True], "offset_alibi": [100], "skip_bias_add": [True], "attention_softmax_in_fp32": [True],
            "masked_softmax_fusion": [True], "intermediate_size": [20]},
        [["hidden_size", "n_embed"], ["n_layer", "num_hidden_layers"], ["n_head", "num_attention_heads"]]),
    Family("gpt_neox", hf.GPTNeoXForCausalLM, OLD | {"intermediate_size": 24, "rotary_pct": 0.5, "num_attention_heads": 2, "rotary_emb_base": 1000.0, "hidden_dropout": 0.125, "attention_dropout": 0.25},
        SHAPES | TIE | PAD | {"rope_scaling": SCALINGS, "rope_parameters": PARAMETERS, "max_position_embeddings": [8, 64], "rotary_pct": [0.25, 1.0], "rotary_emb_base": [500.0],
            "rope_theta": [500.0], "partial_rotary_factor": [0.25], "intermediate_size": [20], "num_attention_heads": [1], "hidden_act": ACTS, "attention_dropout": [0.0], "hidden_dropout": [0.0], "layer_norm_eps": [1e-3],
            "use_parallel_residual": [True, False], "attention_bias": [True, False], "classifier_dropout": [0.5], "head_dim": [6]},
        [["rotary_pct", "rotary_emb_base", "rope_theta", "rope_scaling", "rope_parameters"], ["rotary_pct", "rotary_emb_base", "rope_parameters"]]),
    decoder("llama", hf.LlamaForCausalLM, {}, ACT | HEAD_DIM | BIAS | {"mlp_bias": [True, False], "sliding_window": [4], "layer_types": TYPES, "pretraining_tp": [2]}, [HEADS]),
    decoder("mistral", hf.MistralForCausalLM, {}, ACT | HEAD_DIM | WINDOW | {"layer_types": TYPES, "attention_bias": [True], "use_sliding_window": [True, False]},
        [HEADS, ["sliding_window", "layer_types"]]),
    decoder("qwen2", hf.Qwen2ForCausalLM, {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        ACT | HEAD_DIM | WINDOW | USE | {"attention_bias": [False]}, [HEADS, WINDOWS]),
    decoder("qwen3", hf.Qwen3ForCausalLM, {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1, "head_dim": 4}, ACT | HEAD_DIM | WINDOW | USE | BIAS, [HEADS, WINDOWS]),
    decoder("phi3", hf.Phi3ForCausalLM, {"resid_pdrop": 0.125, "original_max_position_embeddings": 16, "pad_token_id": None}, ACT | HEAD_DIM | WINDOW | {"resid_pdrop": [0.0], "embd_pdrop": [0.5],
        "original_max_position_embeddings": [8], "attention_bias": [True], "layer_types": TYPES}, [HEADS, ["partial_rotary_factor", *ROPES, "original_max_position_embeddings"]]),
    decoder("gemma2", hf.Gemma2ForCausalLM, GEMMA | {"pad_token_id": None}, GEMMA_KEYS, [HEADS, ["sliding_window", "layer_types"]], gain=0.0),
    decoder("gemma3_text", hf.Gemma3ForCausalLM, GEMMA | {"rope_local_base_freq": 100.0, "sliding_window_pattern": 2, "pad_token_id": None},
        GEMMA_KEYS | {"sliding_window_pattern": [1, 3, 6, 0], "_sliding_window_pattern": [3], "rope_local_base_freq": [50.0], "rope_parameters": NESTED + PARAMETERS[:2]},
        [HEADS, ["sliding_window", "layer_types", "sliding_window_pattern"], ["rope_theta", "rope_local_base_freq", "rope_scaling", "rope_parameters"]], gain=0.0),
    decoder("mixtral", hf.MixtralForCausalLM, {"num_local_experts": 4, "num_experts_per_tok": 2}, ACT | HEAD_DIM | WINDOW | {"num_local_experts": [3], "num_experts": [5],
        "num_experts_per_tok": [1, 3], "output_router_logits": [True, False], "router_aux_loss_coef": [0.5], "router_jitter_noise": [0.1], "attention_bias": [True], "layer_types": TYPES},
        [HEADS, ["num_local_experts", "num_experts", "num_experts_per_tok"], ["output_router_logits", "router_aux_loss_coef", "num_hidden_layers"]], expert=mixtral_expert),
    decoder("qwen2_moe", hf.Qwen2MoeForCausalLM, MOE | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 3, "shared_expert_intermediate_size": 10},
        ACT | HEAD_DIM | WINDOW | USE | EXPERTS | {"shared_expert_intermediate_size": [6], "qkv_bias": [True, False]}, [HEADS, WINDOWS, ROUTES]),
    decoder("qwen3_moe", hf.Qwen3MoeForCausalLM, MOE | {"use_sliding_window": True, "sliding_window": 5, "head_dim": 4}, ACT | HEAD_DIM | WINDOW | USE | EXPERTS | BIAS,
        [HEADS, WINDOWS, ROUTES]),
    decoder("deepseek_v2", hf.DeepseekV2ForCausalLM, LATENT | {"topk_method": "group_limited_greedy"}, LATENT_KEYS, [GROUPS]),
    decoder("deepseek_v3", hf.DeepseekV3ForCausalLM, LATENT | {"num_nextn_predict_layers": 0}, LATENT_KEYS | {"rope_interleave": [True, False], "num_nextn_predict_layers": [1], "num_mtp_layers": [0, 1]},
        [GROUPS, ["num_nextn_predict_layers", "num_mtp_layers"]]),
    Family("bert", hf.BertForMaskedLM, OLD | {"intermediate_size": 24, "pad_token_id": None, "hidden_dropout_prob": 0.125, "attention_probs_dropout_prob": 0.25},
        SHAPES | TIE | PAD | {"intermediate_size": [20], "hidden_act": ACTS, "hidden_dropout_prob": [0.0], "attention_probs_dropout_prob": [0.0], "max_position_embeddings": [20],
            "type_vocab_size": [3], "layer_norm_eps": [1e-3], "position_embedding_type": ["absolute", "relative_key"], "is_decoder": [True, False], "add_cross_attention": [True, False],
            "classifier_dropout": [0.5], "embedding_size": [8]},
        [["tie_word_embeddings", "is_decoder", "add_cross_attention"]], types=True),
    Family("vit", hf.ViTForImageClassification, {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24, "image_size": 12, "patch_size": 4,
            "hidden_dropout_prob": 0.125, "attention_probs_dropout_prob": 0.25, "num_labels": 3},
        {"hidden_size": [24], "num_hidden_layers": [2], "num_attention_heads": [2], "initializer_range": [0.05], "intermediate_size": [20], "hidden_act": ACTS, "hidden_dropout_prob": [0.0],
            "attention_probs_dropout_prob": [0.0], "layer_norm_eps": [1e-3], "image_size": [8, [12, 12]], "patch_size": [6, [4, 4]], "num_channels": [1], "qkv_bias": [True, False],
            "num_labels": [5], "id2label": [{"0": "a", "1": "b", "2": "c", "3": "d"}], "encoder_stride": [8], "pooler_act": ["relu"], "pooler_output_size": [8],
            "problem_type": ["regression", "single_label_classification", "multi_label_classification"], "head_dim": [6]},
        [["num_labels", "id2label"], ["image_size", "patch_size"]], pixels=True),
]
