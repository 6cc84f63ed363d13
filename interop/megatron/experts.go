package megatron

import "github.com/planc-dev/planc/ir/spec"

// qwenExperts sets the experts of Qwen's families.
func (m *modelReader) qwenExperts() {
	m.set("intermediate_size", m.ffn(), "ffn_hidden_size")
	m.set("num_experts", m.s.number("num_experts"), "num_experts")
	m.set("num_experts_per_tok", m.s.number("moe_router_topk"), "moe_router_topk")
	m.set("moe_intermediate_size", m.expertWidth(), m.widthFrom())
	m.assume("model.norm_topk_prob", true, "Megatron-LM's router")
}

// deepseek sets a model with MLA and experts.
func (m *modelReader) deepseek() {
	s := m.s
	family := "deepseek_v2"
	if s.text("moe_router_score_function") == "sigmoid" {
		family = "deepseek_v3"
	}
	m.decoder(family)
	m.set("intermediate_size", m.ffn(), "ffn_hidden_size")
	if s.has("q_lora_rank") {
		m.set("q_lora_rank", s.number("q_lora_rank"), "q_lora_rank")
	} else {
		m.set("q_lora_rank", "null", "q_lora_rank")
	}
	m.set("kv_lora_rank", s.number("kv_lora_rank"), "kv_lora_rank")
	m.set("qk_nope_head_dim", s.number("qk_head_dim"), "qk_head_dim")
	m.set("qk_rope_head_dim", s.number("qk_pos_emb_head_dim"), "qk_pos_emb_head_dim")
	m.set("v_head_dim", s.number("v_head_dim"), "v_head_dim")
	m.set("n_routed_experts", s.number("num_experts"), "num_experts")
	m.set("num_experts_per_tok", s.number("moe_router_topk"), "moe_router_topk")
	m.set("moe_intermediate_size", m.expertWidth(), m.widthFrom())
	m.set("routed_scaling_factor", floatText(max(1, s.float("moe_router_topk_scaling_factor"))),
		"moe_router_topk_scaling_factor")
	m.shared()
	m.leadingLayers()
	m.deepseekRouter(family)
	m.used("multi_latent_attention", "kv_channels", "moe_router_score_function", "moe_router_enable_expert_bias",
		"num_query_groups")
}

// shared sets the shared experts: a multiple of an expert's width.
func (m *modelReader) shared() {
	const dest = "moe_shared_expert_intermediate_size"
	width, one := m.s.number(dest), m.expertWidth()
	if width == 0 || one == 0 || width%one != 0 {
		m.fail(dest, "%s %d: planc prices shared experts of MLA models as a multiple of %s, which is %d", m.name(dest),
			width, m.name("moe_ffn_hidden_size"), one)
		return
	}
	m.set("n_shared_experts", width/one, dest)
}

// leadingLayers sets the leading layers without experts.
func (m *modelReader) leadingLayers() {
	const dest = "moe_layer_freq"
	n, ok := m.denseLayers()
	if !ok {
		m.fail(dest, "%s %s: planc has layers without experts only in front of all others", m.name(dest),
			m.s.text(dest))
		return
	}
	m.set("first_k_dense_replace", n, dest)
}

// deepseekRouter sets how a token's experts are chosen.
func (m *modelReader) deepseekRouter(family string) {
	s := m.s
	groups, best := max(1, s.number("moe_router_num_groups")), max(1, s.number("moe_router_group_topk"))
	if family == "deepseek_v2" {
		if groups == 1 {
			return
		}
		m.assume("model.topk_method", "group_limited_greedy", m.name("moe_router_num_groups"))
	} else {
		m.assume("model.norm_topk_prob", true, "Megatron-LM's router")
		m.set("num_nextn_predict_layers", s.number("mtp_num_layers"), "mtp_num_layers")
	}
	m.set("n_group", groups, "moe_router_num_groups")
	m.set("topk_group", best, "moe_router_group_topk")
}

// balancedOver maps the kinds of balance losses to the tokens over which planc computes them. Megatron-LM's aux_loss
// sums over tp and cp, and planc's also over dp, which takes about the same time. global_aux_loss is not in the map: it
// averages over the step's micro-batches, while planc's global_batch requires one.
var balancedOver = map[string]string{"aux_loss": spec.OverMicroBatch, "seq_aux_loss": spec.OverSequence}

// balanceLoss returns the kind of Megatron-LM's balance loss for the tokens over which planc computes it.
func balanceLoss(over string) string {
	switch over {
	case spec.OverMicroBatch:
		return "aux_loss"
	case spec.OverGlobalBatch:
		return "global_aux_loss"
	}
	return "seq_aux_loss"
}

// routing sets how routers are trained, and notes what the family does not have.
func (m *modelReader) routing(sh shape) {
	s := m.s
	if !sh.experts {
		return
	}
	const loss, coefficient = "moe_router_load_balancing_type", "moe_aux_loss_coeff"
	kind := s.text(loss)
	over := balancedOver[kind]
	if s.float(coefficient) > 0 && (over != "" || kind == "global_aux_loss") {
		m.importer.set("train.experts.balance", floatText(s.float(coefficient)), coefficient)
	}
	switch {
	case s.float(coefficient) <= 0:
	case over != "":
		m.importer.set("train.experts.over", over, loss)
	case kind == "global_aux_loss":
		m.note(loss, "averages the choices over the micro-batches of a step; planc prices a loss over each sequence")
	}
	if s.float("moe_z_loss_coeff") > 0 {
		m.importer.set("train.experts.z", floatText(s.float("moe_z_loss_coeff")), "moe_z_loss_coeff")
	}
	if s.float("moe_expert_capacity_factor") > 0 {
		m.importer.set("train.experts.capacity", floatText(s.float("moe_expert_capacity_factor")),
			"moe_expert_capacity_factor")
	}
	if !sh.gated {
		m.note("num_experts", "planc prices experts with SwiGLU")
	}
	if n, ok := m.denseLayers(); !sh.latent && (n > 0 || !ok) {
		m.note("moe_layer_freq", "planc prices experts in every layer of this family")
	}
	if !sh.latent && s.text("moe_router_score_function") != "softmax" {
		m.note("moe_router_score_function", "planc has softmax in this family, which costs the same")
	}
}
