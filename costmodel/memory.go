package costmodel

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// Memory in addition to the arena, in bytes. Collectives of the CPU engine work inside the arena.
const (
	// An idle Go process with the packages of a planc CPU binary: 5.8 MiB peak resident memory (VmHWM) on linux/amd64,
	// Go 1.26, measured 2026-11 with net/http, log/slog and encoding/json linked. All ranks share it.
	cpuProcess = 6 << 20
	// Stacks, groups and bookkeeping of a rank's goroutines; assumed.
	cpuRank = 1 << 20
	// A CUDA context with the kernels that a run loads. Users measured a context with NCCL: 484 MiB on an RTX 3090
	// (github.com/NVIDIA/nccl/pull/2366). Two others measured it with communicators whose buffers are known from NCCL's
	// source, which leaves 272 MiB on an A100 (issue 964, if its figures include the context) and 435 MiB on an H100
	// (issue 1685, if rings were connected). planc loads kernels of cuBLASLt, of cuDNN and of its own in addition.
	// Assumed, not measured yet.
	gpuContext = 500 << 20
	// What a rank allocates in addition to its arena: for constants and feeds, for sums (runtime/gpu/memory.go), and
	// the workspace of cuBLASLt (GEMMWorkspace in cuda/blaslt.go).
	tableBytes, sumBytes, gemmWorkspace = 8 << 20, 1 << 20, 32 << 20
	gpuBuffers                          = tableBytes + sumBytes + gemmWorkspace
	// The largest workspace of cuDNN attention that the runtime allows (MaxAttentionWorkspace in cuda/cudnnparts.go).
	maxAttentionWorkspace = 256 << 20
	// cuDNN attention has heads of at most this size, a multiple of the second (cuda/cudnnattention.go).
	maxAttentionDim, attentionDims = 128, 8
)

// Outside is the memory of a rank outside its arena that depends on the plan, in bytes.
type Outside struct {
	Communicators int64 // buffers of NCCL's communicators
	Attention     int64 // workspace of cuDNN attention
	FP8           int64 // FP8 copies of a matmul's operands
}

// Total returns the sum.
func (o Outside) Total() int64 { return o.Communicators + o.Attention + o.FP8 }

// AttentionWorkspace returns the workspace in bytes that cuDNN needs for the gradient of attention over a number of
// sequences. It stores the gradient of the scores, in 16 bits, of a part of the sequences, as many as fit. planc's own
// kernels compute what cuDNN does not support and, if those of one sequence do not fit, the gradient.
func AttentionWorkspace(a ir.LibraryAttention, sequences int) int64 {
	if a.Dim > maxAttentionDim || a.Dim%attentionDims != 0 {
		return 0
	}
	scores := 2 * int64(a.Heads*a.Group) * int64(a.Seq) * int64(a.KSeq)
	for n := sequences; n > 0; n-- {
		if bytes := scores * int64(n); sequences%n == 0 && bytes <= maxAttentionWorkspace {
			return bytes
		}
	}
	return 0
}

// Memory is the memory of a rank of the fullest stage in bytes, by the parts of contract.md, which add up to Total.
// Capacity is the device's memory less headroom.
type Memory struct {
	Total       int64 `json:"total"`
	Capacity    int64 `json:"capacity"`
	Params      int64 `json:"params"`
	Grads       int64 `json:"grads"`
	Optimizer   int64 `json:"optimizer"` // moments and master copy
	Activations int64 `json:"activations"`
	Workspace   int64 `json:"workspace"` // including the step's batch and the result of the logits entry
	Comm        int64 `json:"comm"`
	Overhead    int64 `json:"overhead"` // the engine's memory in addition to the arena

	OverheadParts OverheadParts `json:"overhead_parts" since:"2026-11-28"`
}

// OverheadParts are the parts of Memory.Overhead on a GPU under planc's own runtime, in bytes; else 0.
type OverheadParts struct {
	Context       int64 `json:"context"`       // CUDA context
	Communicators int64 `json:"communicators"` // buffers of NCCL's communicators
	Workspaces    int64 `json:"workspaces"`    // of cuBLASLt and cuDNN, with FP8 copies, constants and feeds
}

// MemoryParts names the parts in order.
var MemoryParts = []string{"params", "grads", "optimizer", "activations", "workspace", "comm", "overhead"}

// Part returns a part by its name.
func (m Memory) Part(name string) int64 {
	switch name {
	case "params":
		return m.Params
	case "grads":
		return m.Grads
	case "optimizer":
		return m.Optimizer
	case "activations":
		return m.Activations
	case "workspace":
		return m.Workspace
	case "comm":
		return m.Comm
	case "overhead":
		return m.Overhead
	}
	return 0
}

// Largest returns the largest part, the first of equal ones.
func (m Memory) Largest() string {
	best := MemoryParts[0]
	for _, p := range MemoryParts[1:] {
		if m.Part(p) > m.Part(best) {
			best = p
		}
	}
	return best
}

// Fits reports whether the device has enough memory.
func (m Memory) Fits() bool { return m.Total <= m.Capacity }

// Over returns the number of missing bytes, 0 if it fits.
func (m Memory) Over() int64 { return max(0, m.Total-m.Capacity) }

// Probability returns the probability that a rank of planc's own runtime fits in the device's whole memory, without
// headroom. The error of predictions is at most 3 % + 64 MiB (law 3), which is taken as two standard deviations of a
// normal distribution. The result has three digits.
func (m Memory) Probability(device Bytes) float64 {
	return m.FitProbability(device, (float64(0.03*float64(m.Total))+64*float64(MiB))/2)
}

// FitProbability returns the probability that a rank fits in the device's whole memory, if the error of the prediction
// has a normal distribution with this standard deviation in bytes. The result has three digits.
func (m Memory) FitProbability(device Bytes, deviation float64) float64 {
	p := 0.5 * math.Erfc((float64(m.Total)-float64(device))/(deviation*math.Sqrt2))
	return math.Round(p*1000) / 1000
}

// MemoryOf adds the engine's overhead to the regions of an arena, by name (ir.Region...), for a program of a number of
// ranks. CPU kernels compute in f32: the memory in which they widen 16-bit numbers is workspace.
func (c *Cluster) MemoryOf(region func(name string) int, outside Outside, ranks int, headroom float64) Memory {
	size := func(names ...string) int64 {
		sum := int64(0)
		for _, n := range names {
			sum += int64(region(n))
		}
		return sum
	}
	m := Memory{
		Capacity:    c.Capacity(headroom),
		Params:      size(ir.RegionParams),
		Grads:       size(ir.RegionGrads),
		Optimizer:   size(ir.RegionMaster, ir.RegionMoment1, ir.RegionMoment2),
		Activations: size(ir.RegionActivations),
		Workspace:   size(ir.RegionWorkspace, ir.RegionBatch, ir.RegionLogits),
		Comm:        size(ir.RegionComm),
	}
	if c.IsCPU() {
		m.Workspace += size(ir.RegionScratch)
		here := int64(max(1, min(ranks, c.Node.Devices)))
		m.Overhead = cpuRank + (cpuProcess+here-1)/here
	} else {
		o := OverheadParts{gpuContext, outside.Communicators, gpuBuffers + outside.Attention + outside.FP8}
		m.OverheadParts, m.Overhead = o, o.Context+o.Communicators+o.Workspaces
	}
	for _, p := range MemoryParts {
		m.Total += m.Part(p)
	}
	return m
}

// Capacity returns a device's memory less headroom, a fraction.
func (c *Cluster) Capacity(headroom float64) int64 {
	return int64(math.Floor(float64(c.GPU.Memory()) * (1 - headroom)))
}

// MemoryMoment is what a rank needs at a moment of training.
type MemoryMoment struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Moments at which memory can run out, in the order in which training reaches them. PyTorch's optimizers, which the
// priced engines use, allocate their moments in the first update (torch.optim.Optimizer.step; Transformer Engine's
// FusedAdam). So the first step may run without them, and the second one fail.
const (
	// FirstPasses is the peak of the first step's passes, when the most activations are saved: without moments.
	FirstPasses = "first_step"
	// OptimizerStep is the first update: all state and its temporaries, without activations.
	OptimizerStep = "optimizer_step"
	// LaterPasses is the peak of the passes of all later steps: everything.
	LaterPasses = "later_steps"
	// Start is when planc's own runtime allocates everything that it will use.
	Start = "start"
)
