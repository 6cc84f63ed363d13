package kernels

import (
	"embed"
	"slices"
)

// Sources holds the kernel files, *.cu, and what they include, *.cuh.
//
//go:embed *.cu *.cuh
var Sources embed.FS

// Kernel is a family of functions with one name, one for each type of Types.
type Kernel struct {
	Name string // without the type's suffix
	File string
	// Params lists the parameters in order, "name:kind" each. Pointer kinds: T points to stored numbers, in the
	// order of the suffix if that names several types; A to numbers in the compute type, f32 or f64; P, I, D, W
	// and S to unsigned or signed 32-bit integers, doubles, 64-bit integers, and addresses. Values: i, l, u and
	// d are int, long long, unsigned long long, double; s is the struct that AttentionShape encodes. A ? after
	// a kind says that the pointer may be null.
	Params string
	Types  []string
	// Loop is the function of runtime/cpu, or of another package of runtime, that the kernel must equal.
	Loop string
	// Launch returns the geometry for rows rows of cols elements. Flat arrays have 1 row.
	Launch func(rows, cols int) Launch
}

// Launch is a grid of blocks of threads.
type Launch struct{ Grid, Block [3]int }

// all holds the suffixes of EACH_TYPE in base.cuh.
var all = []string{"f32", "f64", "bf16", "f16"}

// Other suffixes: of kernels with one type, of casts to a type from another, of two types, and of
// parameters, gradients and moments.
var (
	one    = []string{"f64"}
	narrow = []string{"bf16", "f16"}
	pairs  = []string{"f32_f64", "f32_bf16", "f32_f16", "f64_f32", "f64_bf16", "f64_f16", "bf16_f32", "bf16_f64",
		"bf16_f16", "f16_f32", "f16_f64", "f16_bf16"}
	ids     = []string{"i32"}
	moved   = []string{"f32", "f64", "bf16", "f16", "i32"}
	couples = each([]string{"f32", "bf16", "f16"}, "f64_f64")
	updates = each(couples[1:], "f64_f64_f64")
)

// each returns the suffixes of EACH_COUPLE in base.cuh with the given first types, after that of doubles.
func each(firsts []string, doubles string) []string {
	out := []string{doubles}
	for _, first := range firsts {
		for _, other := range []string{"f32", "bf16", "f16"} {
			out = append(out, first+"_"+other)
		}
	}
	return out
}

// Table lists every kernel.
var Table = slices.Concat(table, onTensorCoresTable())

// table lists the kernels that are not in families.
var table = []Kernel{
	// norms
	{Name: "rms_norm", File: "norm.cu", Params: "y:T sum:T? x:T residual:T? gain:T rows:i cols:i eps:d unit:i",
		Types: all, Loop: "cpu.RMSNorm", Launch: rowwise},
	{Name: "layer_norm", File: "norm.cu", Params: "y:T sum:T? x:T residual:T? gain:T bias:T? rows:i cols:i eps:d",
		Types: all, Loop: "cpu.LayerNorm", Launch: rowwise},
	{Name: "rms_norm_dx", File: "norm.cu", Params: "dx:T dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i",
		Types: all, Loop: "cpu.RMSNormDX", Launch: rowwise},
	{Name: "layer_norm_dx", File: "norm.cu", Params: "dx:T dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: all,
		Loop: "cpu.LayerNormDX", Launch: rowwise},
	{Name: "rms_norm_stats", File: "norm.cu", Params: "stats:A x:T rows:i cols:i eps:d", Types: all,
		Loop: "cpu.RMSNormDGain", Launch: rowwise},
	{Name: "layer_norm_stats", File: "norm.cu", Params: "stats:A x:T rows:i cols:i eps:d", Types: all,
		Loop: "cpu.LayerNormDGain", Launch: rowwise},
	{Name: "norm_dgain", File: "norm.cu", Params: "part:A dy:T x:T stats:A rows:i cols:i acc:i", Types: all,
		Loop: "cpu.LayerNormDGain", Launch: columnwise},
	{Name: "rms_norm_grads1", File: "norm_grads.cu",
		Params: "dx:T gainPart:A dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i", Types: narrow,
		Loop: "cpu.RMSNormDX", Launch: gradwise},
	{Name: "rms_norm_grads2", File: "norm_grads.cu",
		Params: "dx:T gainPart:A dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i", Types: narrow,
		Loop: "cpu.RMSNormDX", Launch: gradwise},
	{Name: "rms_norm_grads3", File: "norm_grads.cu",
		Params: "dx:T gainPart:A dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i", Types: narrow,
		Loop: "cpu.RMSNormDX", Launch: gradwise},
	{Name: "rms_norm_grads4", File: "norm_grads.cu",
		Params: "dx:T gainPart:A dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i", Types: narrow,
		Loop: "cpu.RMSNormDX", Launch: gradwise},
	{Name: "layer_norm_grads1", File: "norm_grads.cu",
		Params: "dx:T gainPart:A biasPart:A? dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: narrow,
		Loop: "cpu.LayerNormDX", Launch: gradwise},
	{Name: "layer_norm_grads2", File: "norm_grads.cu",
		Params: "dx:T gainPart:A biasPart:A? dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: narrow,
		Loop: "cpu.LayerNormDX", Launch: gradwise},
	{Name: "layer_norm_grads3", File: "norm_grads.cu",
		Params: "dx:T gainPart:A biasPart:A? dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: narrow,
		Loop: "cpu.LayerNormDX", Launch: gradwise},
	{Name: "layer_norm_grads4", File: "norm_grads.cu",
		Params: "dx:T gainPart:A biasPart:A? dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: narrow,
		Loop: "cpu.LayerNormDX", Launch: gradwise},

	// sums
	{Name: "sum_rows", File: "reduce.cu", Params: "part:A x:T rows:i cols:i acc:i", Types: all, Loop: "cpu.SumRows",
		Launch: columnwise},
	{Name: "sum_rows_each", File: "reduce.cu", Params: "out:A x:T n:i rows:i cols:i acc:i", Types: all,
		Loop: "cpu.SumRowsEach", Launch: rowwise},
	{Name: "sum_cols", File: "reduce.cu", Params: "out:A x:T rows:i cols:i acc:i", Types: all, Loop: "cpu.SumCols",
		Launch: rowwise},
	{Name: "sum_squares", File: "reduce.cu", Params: "part:D x:T n:l", Types: all, Loop: "cpu.SumSquares",
		Launch: flat},
	{Name: "sum_parts", File: "reduce.cu", Params: "out:D part:D n:i", Types: one, Loop: "cpu.SumSquares",
		Launch: single},
	{Name: "not_finite", File: "reduce.cu", Params: "flag:I x:T n:l", Types: all, Loop: "runtime.ClipGradients",
		Launch: flat},
	{Name: "clip", File: "reduce.cu", Params: "out:D pair:D scale:D limit:d", Types: one,
		Loop: "runtime.ClipGradients", Launch: single},
	{Name: "scaler", File: "reduce.cu", Params: "state:D clip:D window:i hysteresis:i least:d consecutive:i",
		Types: one, Loop: "runtime.LossScaleSettings", Launch: single},

	// copies
	{Name: "cast", File: "move.cu", Params: "y:T x:T n:l", Types: pairs, Loop: "num.Convert", Launch: flat},
	{Name: "accumulate", File: "move.cu", Params: "grad:T x:T n:l", Types: couples, Loop: "runtime.Accumulate",
		Launch: flat},
	{Name: "join", File: "move.cu", Params: "y:T a:T b:T outer:i times:i width:i more:i", Types: all,
		Loop: "runtime.Join", Launch: rowwise},
	{Name: "part", File: "move.cu", Params: "y:T x:T rows:i cols:i n:i at:i", Types: all, Loop: "runtime.PartOf",
		Launch: rowwise},
	{Name: "all_reduce_sum", File: "move.cu", Params: "members:S count:i lo:l hi:l", Types: all,
		Loop: "comm.AllReduce", Launch: flat},
	{Name: "all_reduce_max", File: "move.cu", Params: "members:S count:i lo:l hi:l", Types: all,
		Loop: "comm.AllReduce", Launch: flat},
	{Name: "all_reduce_lse", File: "move.cu", Params: "members:S count:i lo:l hi:l", Types: all[:2],
		Loop: "comm.AllReduce", Launch: flat},
	{Name: "reduce_scatter_sum", File: "move.cu", Params: "y:T members:S count:i rows:i cols:i total:i at:i",
		Types: all, Loop: "comm.ReduceScatter", Launch: rowwise},
	{Name: "gather", File: "move.cu", Params: "y:T x:T outer:i members:i inner:i total:i zigzag:i", Types: moved,
		Loop: "comm.AllGatherZigzag", Launch: rowwise},
	{Name: "scatter", File: "move.cu", Params: "y:T x:T outer:i first:i count:i inner:i total:i zigzag:i",
		Types: moved, Loop: "comm.SliceZigzag", Launch: rowwise},
	{Name: "fill", File: "move.cu", Params: "y:T value:d n:l", Types: all, Loop: "runtime.Zero", Launch: flat},
	{Name: "round_as", File: "move.cu", Params: "x:T n:l", Types: []string{"f32_bf16", "f32_f16"},
		Loop: "num.RoundBF16", Launch: flat},
	{Name: "dropout", File: "move.cu", Params: "y:T x:T view:I key:W least:u scale:d rows:i cols:i", Types: all,
		Loop: "cpu.Dropout", Launch: rowwise},

	// FP8 operands
	{Name: "fp8_absmax", File: "fp8.cu", Params: "part:A x:T n:l", Types: narrow[:1], Loop: "cpu.MatMul8",
		Launch: flat},
	{Name: "fp8_quantize", File: "fp8.cu", Params: "y:P x:T part:A scale:A parts:i groups:i rows:i cols:i width:i " +
		"transposed:i format:i", Types: narrow[:1], Loop: "cpu.MatMul8", Launch: tilewise},
	{Name: "fp8_round", File: "fp8.cu", Params: "y:T x:T part:A parts:i n:l format:i", Types: narrow[:1],
		Loop: "cpu.MatMul8", Launch: flat},

	// numbers of a step
	{Name: "iota", File: "step.cu", Params: "ids:I at:i half:i then:i offset:i most:i n:l", Types: ids,
		Loop: "runtime.Iota", Launch: flat},
	{Name: "inv_count", File: "step.cu", Params: "y:T scale:D over:D", Types: all, Loop: "runtime.AuxScale",
		Launch: single},
	{Name: "add_scalar", File: "step.cu", Params: "sum:D x:T", Types: all, Loop: "runtime.AddAux", Launch: single},
	{Name: "norm_pair", File: "step.cu", Params: "pair:D part:D loss:D n:i", Types: one, Loop: "runtime.ClipGradients",
		Launch: single},
	{Name: "drop_keys", File: "step.cu", Params: "keys:W sites:I step:W n:i", Types: ids, Loop: "runtime.DropoutKey",
		Launch: flat},
	{Name: "choose", File: "step.cu", Params: "words:W offered:W skipped:D retried:W n:i", Types: ids,
		Loop: "runtime.Hyper", Launch: flat},
	{Name: "exceeds", File: "step.cu", Params: "flag:D rounds:I most:I retried:D n:i", Types: ids,
		Loop: "runtime.Rounds", Launch: single},

	// loss
	{Name: "logsumexp", File: "loss.cu", Params: "l:A x:T rows:i cols:i valid:i", Types: all, Loop: "cpu.LogSumExp",
		Launch: rowwise},
	{Name: "pick", File: "loss.cu", Params: "y:A x:T ids:I rows:i cols:i lo:i n:i", Types: all, Loop: "cpu.Pick",
		Launch: rowwise},
	{Name: "logsumexp_pick", File: "loss.cu", Params: "l:A y:A x:T ids:I rows:i cols:i valid:i lo:i n:i", Types: all,
		Loop: "cpu.LogSumExp", Launch: rowwise},
	{Name: "logsumexp_grad", File: "loss.cu", Params: "dx:T dl:A x:T l:A rows:i cols:i valid:i", Types: all,
		Loop: "cpu.LogSumExpGrad", Launch: rowwise},
	{Name: "pick_grad", File: "loss.cu", Params: "dx:T dy:A ids:I rows:i cols:i lo:i n:i", Types: all,
		Loop: "cpu.PickGrad", Launch: rowwise},
	{Name: "logsumexp_pick_grad", File: "loss.cu",
		Params: "dx:T dl:A dy:A x:T l:A ids:I rows:i cols:i valid:i lo:i n:i", Types: all, Loop: "cpu.LogSumExpGrad",
		Launch: rowwise},
	{Name: "cross_entropy", File: "loss.cu", Params: "ce:A dx:T dl:A x:T ids:I rows:i cols:i valid:i", Types: all,
		Loop: "cpu.CrossEntropy", Launch: longRows},

	// positions and tables
	{Name: "rope", File: "rope.cu", Params: "y:T x:T cos:A sin:A rows:i seq:i ld:i heads:i dim:i from:i turn:i " +
		"pairs:i inverse:i", Types: all, Loop: "cpu.RoPEPart", Launch: rowwise},
	{Name: "attention", File: "attention.cu", Params: "o:T lse:A q:T k:T v:T shape:s", Types: all,
		Loop: "cpu.Attention", Launch: attentionwise},
	{Name: "attention_dot", File: "attention.cu", Params: "dot:A dout:T o:T rows:l cols:i", Types: all,
		Loop: "cpu.AttentionGrad", Launch: rowwise},
	{Name: "attention_grad_q", File: "attention.cu", Params: "dq:T dout:T q:T k:T v:T lse:A dot:A shape:s", Types: all,
		Loop: "cpu.AttentionGrad", Launch: attentionwise},
	{Name: "attention_grad_kv", File: "attention.cu", Params: "dk:T dv:T dout:T q:T k:T v:T lse:A dot:A shape:s",
		Types: all, Loop: "cpu.AttentionGrad", Launch: attentionwise},
	{Name: "embed", File: "embed.cu", Params: "y:T table:T ids:I rows:i cols:i lo:i n:i", Types: couples,
		Loop: "cpu.Embed", Launch: rowwise},
	{Name: "embed_grad", File: "embed.cu", Params: "dtable:T dy:T buckets:I rows:I starts:I order:I cols:i",
		Types: couples, Loop: "cpu.EmbedGrad", Launch: blockwise},

	// experts
	{Name: "slots", File: "experts.cu", Params: "slot:I from:I count:I index:I choices:i experts:i slots:i round:i",
		Types: ids, Loop: "cpu.Dispatch", Launch: scanwise},
	{Name: "rounds", File: "experts.cu", Params: "out:I count:I experts:i slots:i", Types: ids, Loop: "cpu.Rounds",
		Launch: single},
	{Name: "census", File: "experts.cu", Params: "kept:I all:I index:I choices:i experts:i", Types: ids,
		Loop: "runtime.CountRounds", Launch: scanwise},
	{Name: "limit", File: "experts.cu", Params: "kept:I index:I sequences:i choices:i experts:i most:i", Types: ids,
		Loop: "cpu.LimitChoices", Launch: scanwise},
	{Name: "tally", File: "experts.cu", Params: "n:T index:I groups:i choices:i experts:i", Types: all[:2],
		Loop: "cpu.Tally", Launch: scanwise},
	{Name: "dispatch", File: "experts.cu", Params: "y:T x:T from:I slots:i width:i choices:i", Types: all,
		Loop: "cpu.Dispatch", Launch: rowwise},
	{Name: "combine", File: "experts.cu", Params: "y:T x:T slot:I tokens:i width:i choices:i acc:i", Types: all,
		Loop: "cpu.Combine", Launch: rowwise},
	{Name: "deal", File: "experts.cu", Params: "y:T w:T from:I slots:l", Types: all, Loop: "cpu.Deal", Launch: flat},
	{Name: "collect", File: "experts.cu", Params: "w:T y:T slot:I choices:l acc:i", Types: all, Loop: "cpu.Collect",
		Launch: flat},
	{Name: "route", File: "route.cu", Params: "w:T index:I x:T bias:T? rows:i experts:i choices:i sigmoid:i share:i " +
		"scale:d eps:d groups:i best:i", Types: all, Loop: "cpu.Route", Launch: routewise},
	{Name: "route_grad", File: "route.cu",
		Params: "dx:T dw:T x:T w:T index:I rows:i experts:i choices:i sigmoid:i share:i scale:d eps:d", Types: all,
		Loop: "cpu.RouteGrad", Launch: routewise},
	{Name: "balance", File: "route.cu", Params: "y:A x:T n:A groups:i tokens:i experts:i sigmoid:i scale:d",
		Types: all, Loop: "cpu.Balance", Launch: routewise},
	{Name: "balance_grad", File: "route.cu", Params: "dx:T dy:A x:T n:A groups:i tokens:i experts:i sigmoid:i scale:d",
		Types: all, Loop: "cpu.BalanceGrad", Launch: routewise},

	// updates
	{Name: "adam", File: "optimizer.cu", Params: "p:T master:A? g:T m:T v:T clip:D rates:D key:W? numbers:W? n:l",
		Types: updates, Loop: "cpu.AdamW", Launch: flat},
	{Name: "sgd", File: "optimizer.cu", Params: "p:T master:A? g:T m:T? clip:D rates:D key:W? numbers:W? n:l",
		Types: updates, Loop: "cpu.SGD", Launch: flat},
	{Name: "level", File: "optimizer.cu",
		Params: "p:T master:A? got:T clip:D rate:d experts:d choices:d key:W? numbers:W? n:l", Types: updates,
		Loop: "runtime.Optimize", Launch: flat},
}
