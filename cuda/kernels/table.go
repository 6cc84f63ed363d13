package kernels

import "embed"

// Sources are the files of kernels, *.cu, and what they include, *.cuh.
//
//go:embed *.cu *.cuh
var Sources embed.FS

// Kernel is a family of functions of one name, one for each type of Types.
type Kernel struct {
	Name string // without the type's suffix
	File string
	// Params are the parameters in order, "name:kind" each. Kinds: T is a pointer to stored numbers, A one to numbers as they are computed with, f32 or
	// f64; P, I, D, W and S are pointers to unsigned or signed integers of 32 bits, doubles, integers of 64 bits, and addresses; i, l, u and d are values:
	// int, long long, unsigned long long, double. A ? behind a kind says that the pointer may be null.
	Params string
	Types  []string
	// Loop is the loop of runtime/cpu, or of another package of runtime, that it equals.
	Loop string
	// Launch is the geometry for rows rows of cols elements; of flat arrays rows is 1.
	Launch func(rows, cols int) Launch
}

// Launch is a grid of blocks of threads.
type Launch struct{ Grid, Block [3]int }

// all are the suffixes of base.cuh's EACH_TYPE.
var all = []string{"f32", "f64", "bf16", "f16"}

// Table is every kernel.
var Table = []Kernel{
	// norms
	{Name: "rms_norm", File: "norm.cu", Params: "y:T sum:T? x:T residual:T? gain:T rows:i cols:i eps:d unit:i", Types: all, Loop: "cpu.RMSNorm", Launch: rowwise},
	{Name: "layer_norm", File: "norm.cu", Params: "y:T sum:T? x:T residual:T? gain:T bias:T? rows:i cols:i eps:d", Types: all, Loop: "cpu.LayerNorm", Launch: rowwise},
	{Name: "rms_norm_dx", File: "norm.cu", Params: "dx:T dy:T more:T? x:T gain:T rows:i cols:i eps:d unit:i", Types: all, Loop: "cpu.RMSNormDX", Launch: rowwise},
	{Name: "layer_norm_dx", File: "norm.cu", Params: "dx:T dy:T more:T? x:T gain:T rows:i cols:i eps:d", Types: all, Loop: "cpu.LayerNormDX", Launch: rowwise},
	{Name: "rms_norm_stats", File: "norm.cu", Params: "stats:A x:T rows:i cols:i eps:d", Types: all, Loop: "cpu.RMSNormDGain", Launch: rowwise},
	{Name: "layer_norm_stats", File: "norm.cu", Params: "stats:A x:T rows:i cols:i eps:d", Types: all, Loop: "cpu.LayerNormDGain", Launch: rowwise},
	{Name: "norm_dgain", File: "norm.cu", Params: "part:A dy:T x:T stats:A rows:i cols:i acc:i", Types: all, Loop: "cpu.LayerNormDGain", Launch: columnwise},
}
