package screen

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/runtime/amount"
)

// Header holds what only screens show, in addition to the document.
type Header struct {
	Stages           []costmodel.Seconds // busy time of each pipeline stage in a step; only for explain
	seqLen           int
	globalBatch      int
	precision        string   // name of the preset
	rounding         []string // from roundingWords
	peak             string   // dense peak of the compute type: "989.5 TFLOP/s"; "" if unknown
	links            []string
	measured         []string // rates of this machine's CPU, if they were measured
	link             string   // kind of the link between devices of a node; "" if there is none
	memory           int64    // bytes of a device, before headroom
	isMemoryMeasured bool     // by law 3 on CPUs, by published runs for other engines on GPUs
	device           string   // name of a device: "GPU" or "device"
	command          string   // suggestions of what to type next
	Rows             int      // maximal number of alternatives
	Experts          string   // how experts are placed on ranks; only for explain; "" if there are none
	lock             string   // note on the lock; "" if there is none
	emulationNote    string   // note on types that the devices only emulate; "" if there is none
	barSource        string   // basis of the error bar, if it is not runs of the job's engine
	pinned           []string // keys of the plan that the job pins, with values
}

// emulatedFP8 is the note on fp8 for a CPU (docs/concepts/fp8.md).
const emulatedFP8 = "fp8 is emulated on a CPU: operands are rounded to fp8 and multiplied in f32; bf16 is faster and " +
	"takes as much memory"

func newHeader(q *planner.Question, lock string) Header {
	c := q.Hardware
	h := Header{lock: lock, seqLen: q.Train.SeqLen, globalBatch: q.Train.GlobalBatch,
		precision: precisionName(q.Train.Precision), rounding: roundingWords(q.Train.Precision),
		links: links(c), link: linkNames[c.Node.Link.Kind], memory: int64(c.GPU.Memory()), device: "GPU",
		Rows: DefaultRows, pinned: search.PinsOf(&q.Plan).Words(),
		command: nextCommands(q), isMemoryMeasured: q.HasMeasuredMemory()}
	h.measured = measuredWords(q)
	if c.IsCPU() {
		h.device = "device"
		if q.Train.Precision.Compute == "fp8" {
			h.emulationNote = emulatedFP8
		}
	}
	if dev, ok := c.DeviceOf(&engines.EngineOf(q.Train.Engine).Kernels, q.Train.Precision.Compute); ok {
		h.peak = dev.Peak.String()
	}
	return h
}

// nextCommands returns commands to type after plan. They all work for the job.
func nextCommands(q *planner.Question) string {
	words := []string{"planc explain"}
	c, n := q.Hardware, q.Hardware.Devices()
	switch {
	case spec.CheckCompile(q.Job) == nil && q.CheckFixedHardware() == nil:
		words = append(words, "planc compile -o train")
	case len(c.Network) > 0:
		words = append(words, fmt.Sprintf("planc plan --sweep gpus=%d..%d", n, 8*n))
	case n > 1:
		words = append(words, fmt.Sprintf("planc plan --sweep gpus=1..%d", n))
	}
	words = append(words, "planc explain --why-not ...")
	if line := strings.Join(words, " · "); layout.Width(line) <= layout.ScreenWidth {
		return line
	}
	return strings.Join([]string{words[0], words[len(words)-1]}, " · ")
}

// precisionName returns the name of a precision preset, or "TYPE mixed" for other precisions.
func precisionName(p spec.Precision) string {
	if spec.Presets[p.Compute] == p {
		return p.Compute
	}
	return p.Compute + " mixed"
}

// roundingWords returns how parameters are rounded, if not to nearest.
func roundingWords(p spec.Precision) (words []string) {
	if p.Rounding != "" {
		words = append(words, p.Rounding+" rounding")
	}
	return words
}

var linkNames = map[string]string{"nvswitch": "NVSwitch", "nvlink": "NVLink", "pcie": "PCIe", "xgmi": "xGMI"}

// links describes the cluster's links: "NVSwitch 450 GB/s".
func links(c *costmodel.Cluster) (words []string) {
	if name := linkNames[c.Node.Link.Kind]; name != "" && c.Node.Devices > 1 {
		words = append(words, fmt.Sprintf("%s %.0f GB/s", name, float64(c.Node.Link.Bandwidth)/1e9))
	}
	if c.Nodes > 1 && len(c.Network) > 0 {
		t := c.Network[0]
		words = append(words, fmt.Sprintf("%d × %.0f Gb/s", t.NICs, float64(t.Bandwidth)*8/1e9))
	}
	return words
}

// measuredWords says that the job's cluster is this machine's CPU at measured rates; nil if it is not.
func measuredWords(q *planner.Question) []string {
	if q.MeasuredCPU == nil {
		return nil
	}
	return []string{fmt.Sprintf("measured: %s GFLOP/s per core", amount.Digits(1e3*q.MeasuredCPU.Single, 3))}
}
