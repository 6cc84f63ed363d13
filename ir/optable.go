package ir

// The ops, in groups: contraction, element-wise, shape, norms, tables, attention, loss, experts, effects, collectives,
// update.
const (
	OpMatMul Op = iota
	OpAdd
	OpSub
	OpMul
	OpScale
	OpGelu
	OpGeluGrad
	OpGeluErf
	OpGeluErfGrad
	OpSilu
	OpSiluGrad
	OpSigmoid
	OpSigmoidGrad
	OpRelu
	OpReluGrad
	OpSoftcap
	OpSoftcapGrad
	OpCast
	OpDropout
	OpReduceSum
	OpBroadcast
	OpRename
	OpSelect
	OpSide
	OpSides
	OpJoin
	OpPart
	OpLayerNorm
	OpLayerNormDX
	OpLayerNormDGain
	OpRMSNorm
	OpRMSNormDX
	OpRMSNormDGain
	OpIota
	OpEmbed
	OpEmbedGrad
	OpRope
	OpAttention
	OpAttentionGrad
	OpAttentionGradSides
	OpLogSumExp
	OpLogSumExpGrad
	OpPick
	OpPickGrad
	OpCrossEntropy
	OpInvCount
	OpLimit
	OpTally
	OpBalance
	OpBalanceGrad
	OpRounds
	OpRoute
	OpRouteGrad
	OpDispatch
	OpCombine
	OpDeal
	OpCollect
	OpFused
	OpAccumulate
	OpAllReduce
	OpReduceScatter
	OpAllGather
	OpAllToAll
	OpShift
	OpSend
	OpReceive
	OpSlice
	OpCountTokens
	OpLossReduce
	OpGradNorm
	OpOptimize
	NumOps
)

const betweenStages = "no block has it: the runtime's pipes run it before and after a chunk's blocks"

// ops is the op table, with one row per op. In linear, 1 is operand 0, 2 is operand 1, 3 is both together.
var ops = [NumOps]opInfo{
	// contraction
	OpMatMul: {name: "matmul", text: "b* m* k*, b* k* n* -> b* m* n*", linear: []uint16{1, 2}, grad: true, flops: 2,
		attrs: []string{"in"}, doc: "multiplies and sums over the dims that the result lacks"},

	// element-wise; operands broadcast by name
	OpAdd: {name: "add", text: "b* m*, b* n* -> b* m* n*", linear: []uint16{3}, grad: true, flops: 1, element: true,
		doc: "x + y"},
	OpSub: {name: "sub", text: "b* m*, b* n* -> b* m* n*", linear: []uint16{3}, grad: true, flops: 1, element: true,
		doc: "x - y"},
	OpMul: {name: "mul", text: "b* m*, b* n* -> b* m* n*", linear: []uint16{1, 2}, grad: true, flops: 1, element: true,
		doc: "x * y"},
	OpScale: {name: "scale", text: "m* -> m*", linear: []uint16{1}, grad: true, flops: 1, element: true,
		attrs: []string{"scale"}, doc: "scale * x"},
	OpGelu: {name: "gelu", text: "m* -> m*", grad: true, flops: 12, element: true,
		doc: "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"},
	OpGeluGrad: {name: "gelu_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 20, element: true,
		doc: "dy times gelu's derivative at x"},
	OpGeluErf: {name: "gelu_erf", text: "m* -> m*", grad: true, flops: 12, element: true,
		doc: "x/2 (1 + erf(x/sqrt(2)))"},
	OpGeluErfGrad: {name: "gelu_erf_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 20, element: true,
		doc: "dy times gelu_erf's derivative at x"},
	OpSilu: {name: "silu", text: "m* -> m*", grad: true, flops: 6, element: true,
		doc: "x / (1 + exp(-x))"},
	OpSiluGrad: {name: "silu_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 10, element: true,
		doc: "dy times silu's derivative at x"},
	OpSigmoid: {name: "sigmoid", text: "m* -> m*", grad: true, flops: 5, element: true,
		doc: "1 / (1 + exp(-x))"},
	OpSigmoidGrad: {name: "sigmoid_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 8, element: true,
		doc: "dy times sigmoid's derivative at x"},
	OpRelu: {name: "relu", text: "m* -> m*", grad: true, flops: 1, element: true,
		doc: "max(x, 0)"},
	OpReluGrad: {name: "relu_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 1, element: true,
		doc: "dy where x > 0, else 0"},
	OpSoftcap: {name: "softcap", text: "m* -> m*", grad: true, flops: 8, element: true,
		attrs: []string{"softcap"}, doc: "cap * tanh(x / cap)"},
	OpSoftcapGrad: {name: "softcap_grad", text: "m*, m* -> m*", linear: []uint16{1}, flops: 10, element: true,
		attrs: []string{"softcap"}, doc: "dy times softcap's derivative at x"},
	OpCast: {name: "cast", text: "m* -> m*", linear: []uint16{1}, element: true,
		doc: "converts x to another element type, rounding to nearest"},
	OpDropout: {name: "dropout", text: "m* -> m*", linear: []uint16{1}, grad: true, flops: 6,
		attrs: []string{"drop", "key"}, doc: "x/(1-drop), or 0 with probability drop, drawn by global position"},

	// shape
	OpReduceSum: {name: "reduce_sum", text: "m* k* -> m*", linear: []uint16{1}, grad: true, flops: 1,
		doc: "sums over the dims that the result lacks"},
	OpBroadcast: {name: "broadcast", text: "m* -> m* n*", linear: []uint16{1}, grad: true, element: true,
		doc: "repeats along the dims that the operand lacks"},
	OpRename: {name: "rename", text: "m* a -> m* a'", linear: []uint16{1}, grad: true, view: true,
		attrs: []string{"dim", "to"}, doc: "changes the name of dim to the name to"},
	OpSelect: {name: "select", text: "m* !p -> m*", linear: []uint16{1}, gathers: true,
		attrs: []string{"dim"}, doc: "selects one index of dim, which is known at run time"},
	OpSide: {name: "side", text: "m* !p -> m* !g*", linear: []uint16{1}, grad: true, view: true,
		attrs: []string{"offset"},
		doc: "selects index offset of dim side, or as many from there as the result's group has, without " +
			"copying them"},
	OpSides: {name: "sides", text: "m*, m* -> m* !p", linear: []uint16{3},
		doc: "the operands side by side, where the ops before wrote them"},

	OpJoin: {name: "join", text: "b* m* !p, b* !q -> b* m* !d", linear: []uint16{3}, grad: true, copies: true,
		doc: "appends the second operand's rows to the first's: p and q become d"},
	OpPart: {name: "part", text: "m* !d -> m* !p", linear: []uint16{1}, copies: true,
		attrs: []string{"dim", "offset"}, doc: "the elements of dim from offset on, as many as the result has"},

	// norms over dim
	OpLayerNorm: {name: "layer_norm", text: "m* !d, d, d -> m* d", optional: 1, grad: true, flops: 8,
		attrs: []string{"eps"}, doc: "(x - mean) / sqrt(var + eps) * gain + bias"},
	OpLayerNormDX: {name: "layer_norm_dx", text: "m* !d, m* d, d -> m* d", linear: []uint16{1}, flops: 14,
		attrs: []string{"eps"}, doc: "gradient of layer_norm's x from dy, x, gain"},
	OpLayerNormDGain: {name: "layer_norm_dgain", text: "m* !d, m* d -> d", linear: []uint16{1}, flops: 8,
		attrs: []string{"eps"}, doc: "gradient of layer_norm's gain from dy, x"},
	OpRMSNorm: {name: "rms_norm", text: "m* !d, d -> m* d", grad: true, flops: 5,
		attrs: []string{"eps", "unit"},
		doc:   "x / sqrt(mean(x^2) + eps) * gain; with unit, the gain is 1 + the parameter"},
	OpRMSNormDX: {name: "rms_norm_dx", text: "m* !d, m* d, d -> m* d", linear: []uint16{1}, flops: 10,
		attrs: []string{"eps", "unit"}, doc: "gradient of rms_norm's x from dy, x, gain"},
	OpRMSNormDGain: {name: "rms_norm_dgain", text: "m* !d, m* d -> d", linear: []uint16{1}, flops: 6,
		attrs: []string{"eps"}, doc: "gradient of rms_norm's gain from dy, x"},

	// tables: one-hot contractions
	OpIota: {name: "iota", text: "-> m*",
		attrs: []string{"offset", "most", "documents"}, doc: "min(global index along its dim + offset, most); with " +
			"documents, the index within the document of the batch"},
	OpEmbed: {name: "embed", ints: 2, text: "v n*, m* -> m* n*", linear: []uint16{1}, grad: true, gathers: true,
		attrs: []string{"frozen"}, doc: "rows of the table by index"},
	OpEmbedGrad: {name: "embed_grad", ints: 2, text: "m* n*, m* -> v n*", linear: []uint16{1}, work: operandFlops,
		scatters: true,
		attrs:    []string{"frozen"}, doc: "adds dy's rows to the table's gradient by index, except for row " +
			"frozen - 1"},

	// attention
	OpRope: {name: "rope", text: "m* !d -> m* d", linear: []uint16{1}, grad: true, flops: 6,
		attrs: []string{"dim", "theta", "rope", "layers", "local", "offset", "turn", "adjacent", "inverse"},
		doc: "rotates pairs (j, j+n/2), or with adjacent (2j, 2j+1), of n = turn elements of dim, from offset " +
			"on, by position * theta^(-2j/n); of a value with sides all but the last, which is copied"},
	OpAttention: {name: "attention", stats: 2, text: "b* s* !d, b* t !d, b* t e, b* s* e, b* s* -> b* s* e, b* s*",
		optional: 2, grad: true,
		monoids: []Monoid{WeightedLSE, LSE}, work: attentionFlops(1),
		attrs: []string{"scale", "causal", "documents", "window", "layers", "softcap", "alibi", "drop", "key", "axes"},
		doc: "softmax(scale q k) v, and its log-sum-exp; scores may be capped and biased by distance; with " +
			"documents, a query sees only the keys of its document of the batch; in a ring over axes, merges the " +
			"result of the previous keys"},
	OpAttentionGrad: {name: "attention_grad", work: attentionFlops(2.5), optional: 1,
		text:  "b* s* e, b* s* !d, b* t !d, b* t e, b* s* e, b* s*, b* s* !d -> b* s* !d, b* t !d, b* t e",
		attrs: []string{"scale", "causal", "documents", "window", "layers", "softcap", "alibi", "drop", "key", "axes"},
		doc: "gradients of q, k, v from do, q, k, v, o, lse; in a ring over axes, adds to the gradient of q " +
			"so far"},
	OpAttentionGradSides: {name: "attention_grad_sides", work: attentionFlops(2.5),
		text:  "b* !s* !g* !e, b* !s* !g* !d, b* !t !d, b* !t !e, b* !s* !g* !e, b* !s* !g* -> b* !s* !p d",
		attrs: []string{"scale", "causal", "documents", "window", "layers", "softcap", "alibi", "drop", "key"},
		doc: "the gradients of q, k, v side by side in the value of which they are sides, from do, q, k, v, o, " +
			"lse"},

	// loss
	OpLogSumExp: {name: "logsumexp", stats: 1, text: "m* k* -> m*", grad: true, flops: 4, monoid: LSE,
		doc: "log of the sum of exp over the dims that the result lacks"},
	OpLogSumExpGrad: {name: "logsumexp_grad", text: "m*, m* k*, m* -> m* k*", linear: []uint16{1}, flops: 4,
		doc: "dy exp(x - y) from dy, x, y"},
	OpPick: {name: "pick", stats: 1, ints: 2, text: "m* v, m* -> m*", linear: []uint16{1}, grad: true, gathers: true,
		doc: "the element of v at the index"},
	OpPickGrad: {name: "pick_grad", ints: 2, text: "m*, m* -> m* v", linear: []uint16{1},
		doc: "dy at the index, 0 elsewhere"},
	OpCrossEntropy: {name: "cross_entropy", stats: 1, ints: 2, text: "m* !v, m*, m* -> m*, m* v", flops: 9,
		inPlace: true,
		doc: "log of the sum of exp of x over v minus x at the index, and its gradient times dy, from x, " +
			"indices, dy"},
	OpInvCount: {name: "inv_count", stats: 1, text: "-> m*", attrs: []string{"into"},
		doc: "the loss scale, 1 by default, divided by the unmasked tokens of the global batch, or by its " +
			"sequences for the gradient of aux"},

	// experts: the one rule with special semantics, since the permutation is data. The slots of a round, dim, stay on
	// the ranks that had the tokens. Tokens that find no slot wait for the next round.
	OpRounds: {name: "rounds", ints: 1, text: "m* ->", effect: true, attrs: []string{"axes", "most"},
		doc: "counts the rounds that the tokens need with most slots per expert: the maximum over the ranks of " +
			"the axes"},
	OpLimit: {name: "limit", ints: 1, text: "m* !s -> m* s", attrs: []string{"dim", "most"},
		doc: "experts of choices: each expert keeps the first most of a sequence; dropped ones become -1 - " +
			"expert, which is no slot"},
	OpTally: {name: "tally", stats: 1, ints: 1, text: "g* s* -> g* e", flops: 1,
		doc: "the number of choices of each expert, over the tokens of the group that the result's dims denote"},
	OpBalance: {name: "balance", stats: 1, text: "g* s* !e, g* e -> g*", grad: true, flops: 6, attrs: []string{"gate"},
		doc: "experts * sum_e choices of e * sum_s p_e / (tokens of the group * tokens of a sequence), from " +
			"the router's outputs, of which gate makes the normalized scores p, and the tally"},
	OpBalanceGrad: {name: "balance_grad", text: "g*, g* s* !e, g* e -> g* s* e", linear: []uint16{1}, flops: 8,
		attrs: []string{"gate"},
		doc:   "gradient of balance's x from dy, x, tally"},
	OpRoute: {name: "route", text: "m* !e, e -> m* k, m* k", optional: 1, grad: true, flops: 8,
		attrs: []string{"dim", "gate", "share", "scale", "eps", "groups", "best"},
		doc: "weights and indices of the k experts with the largest scores; gate makes scores of x, and a bias " +
			"affects only the choice"},
	OpRouteGrad: {name: "route_grad", ints: 8, text: "m* k, m* !e, m* k, m* k -> m* e", linear: []uint16{1}, flops: 8,
		attrs: []string{"dim", "gate", "share", "scale", "eps", "groups", "best"},
		doc:   "gradient of route's x from dw, x, w, indices"},
	OpDispatch: {name: "dispatch", ints: 2, text: "s* h*, s* k* -> x c(s) h*", linear: []uint16{1}, grad: true,
		attrs: []string{"dim", "round"}, doc: "sorts tokens by expert into the slots of each"},
	OpCombine: {name: "combine", ints: 2, text: "x c(s) h*, s* k* -> s* h*", linear: []uint16{1}, grad: true,
		attrs: []string{"dim", "round"}, doc: "sums the experts' results for each token"},
	OpDeal: {name: "deal", ints: 2, text: "s*, s* -> x c(s)", linear: []uint16{1}, grad: true,
		attrs: []string{"dim", "round"}, doc: "writes the weight of each choice to its token's slot"},
	OpCollect: {name: "collect", ints: 2, text: "x c(s), s* -> s*", linear: []uint16{1}, grad: true,
		attrs: []string{"dim", "round"}, doc: "reads the slot of each choice's token"},

	// fused groups of element-wise ops and ops on rows: uses and flops are the body's
	OpFused: {name: "fused", text: "->", element: true,
		doc: "runs its body row by row in one loop"},

	// effects
	OpAccumulate: {name: "accumulate", text: "m* ->", linear: []uint16{1}, flops: 1, effect: true,
		attrs: []string{"into"}, doc: "adds to a gradient or to the loss, over the micro-batches of a step"},

	// collectives and their local counterpart
	OpAllReduce: {name: "all_reduce", text: "m* -> m*", comm: true, attrs: []string{"axes", "monoid", "first_last"},
		doc: "combines the parts of a partial value"},
	OpReduceScatter: {name: "reduce_scatter", text: "m* -> m*", comm: true, attrs: []string{"dim", "axes", "monoid"},
		doc: "combines the parts and keeps this rank's share of dim"},
	OpAllGather: {name: "all_gather", text: "m* -> m*", comm: true, attrs: []string{"dim", "axes"},
		doc: "concatenates the shares of dim"},
	OpAllToAll: {name: "all_to_all", text: "m* -> m*", comm: true, attrs: []string{"dim", "to", "axes"},
		doc: "exchanges shares so that to is split instead of dim"},
	OpShift: {name: "shift", text: "m* -> m*", comm: true, attrs: []string{"dim", "axes"},
		doc: "moves the parts of dim around axes by the distance in the axes' labels: each rank sends and " +
			"receives one message"},
	OpSend: {name: "send", text: "m* -> m*", comm: true, attrs: []string{"axes"}, noKernel: betweenStages,
		doc: "sends a block's input, or its gradient, to the stage that needs it"},
	OpReceive: {name: "receive", text: "m* -> m*", comm: true, attrs: []string{"axes"}, noKernel: betweenStages,
		doc: "receives what another stage sends"},
	OpSlice: {name: "slice", text: "m* -> m*", comm: true, attrs: []string{"dim", "axes"},
		doc: "keeps this rank's share of dim"},

	// the start and end of the step, over flat buckets; the first three reduce one number over their axes
	OpCountTokens: {name: "count_tokens", text: "->", effect: true, attrs: []string{"axes"},
		doc: "counts the unmasked tokens of the global batch, before the first micro-batch"},
	OpLossReduce: {name: "loss_reduce", text: "->", effect: true, attrs: []string{"axes"},
		doc: "sums the replicas' losses"},
	OpGradNorm: {name: "grad_norm", text: "->", effect: true, attrs: []string{"axes"},
		doc: "global norm, counting each logical element once; clipping factor; decision to skip the step"},
	OpOptimize: {name: "optimize", text: "m* ->", effect: true, attrs: []string{"bucket"}, flops: 12,
		doc: "one optimizer step of this rank's part of a bucket"},
}
