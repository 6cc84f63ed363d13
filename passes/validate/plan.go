package validate

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// plan returns the row's plan with all its keys, and the batch of a step, which is derived if the row does not state
// it.
func (r *Row) plan(layers int, prec ir.Precision, engine string, flash bool) (p ir.Plan, batch int, err error) {
	p = ir.SerialPlan(layers, 1, prec)
	d := defaultsOf[engine]
	p.TP, p.PP, p.VPP = max(1, r.count("tp", 1)), max(1, r.count("pp", 1)), max(1, r.count("vpp", 1))
	gpus := r.count("num_gpus", 0)
	if gpus < 1 {
		return p, 0, fmt.Errorf("num_gpus is missing")
	}
	if engine == "fsdp" && p.PP > 1 {
		d.micro = defaultMicro
	}
	b := &planReader{Row: r, defaults: d, p: &p}
	b.context()
	if gpus%(p.TP*p.PP*p.CP) != 0 {
		return p, 0, fmt.Errorf("tp %d · pp %d%s must divide %d GPUs", p.TP, p.PP, withCP(&p), gpus)
	}
	p.DP = r.count("dp", gpus/(p.TP*p.PP*p.CP))
	if p.Ranks() != gpus {
		return p, 0, fmt.Errorf("dp %d · tp %d · pp %d%s must be %d GPUs", p.DP, p.TP, p.PP, withCP(&p), gpus)
	}
	if r.count("experts", 0) > 1 {
		p.EP, p.ETP, p.MoESlack = max(1, r.count("ep", 1)), max(1, r.count("etp", 1)), expertPlaces
	}
	p.SP = p.TP > 1 && r.truth("sp", flash) // both were introduced in 2022
	b.shard()
	// torch.distributed.pipelining gathers parameters and reduces gradients once per step
	if engine == "fsdp" && p.PP > 1 && p.Zero >= 2 {
		p.Zero = 1
	}
	batch, err = b.batches()
	if err != nil {
		return p, 0, err
	}
	if err := b.stages(layers); err != nil {
		return p, 0, err
	}
	return p, batch, b.recompute()
}

// planReader fills in the parts of a plan from a row. What the row does not state has the engine's defaults.
type planReader struct {
	*Row
	defaults defaults
	p        *ir.Plan
}

// context sets cp and cp_kind; the default of an empty cp_kind is the engine's.
func (r *planReader) context() {
	p := r.p
	p.CP = max(1, r.count("cp", 1))
	if p.CP == 1 {
		return
	}
	p.CPKind = r.lower("cp_kind")
	if p.CPKind == "" {
		p.CPKind = r.defaults.cp
	}
	p.AxisOrder = "tp,cp,dp"
}

// withCP returns cp as a factor, "" if it is 1.
func withCP(p *ir.Plan) string {
	if p.CP == 1 {
		return ""
	}
	return fmt.Sprintf(" · cp %d", p.CP)
}

// shard sets zero and the ranks that share a copy of the state: with hsdp, those of a node.
func (r *planReader) shard() {
	p := r.p
	zero, stated := r.zeroStage()
	if !stated {
		zero = r.defaults.zero
		if r.lower("zero_or_fsdp") != "" {
			zero = 0
		}
	}
	if r.truth("dist_optimizer", false) {
		zero = max(zero, 1)
	}
	if p.Replicas() == 1 || zero == 0 {
		return
	}
	p.Zero, p.ZeroGroup = zero, p.Replicas()
	if node := r.count("gpus_per_node", defaultPerNode); strings.Contains(r.lower("zero_or_fsdp"), "hsdp") &&
		p.CP == 1 && p.DP > node && p.DP%node == 0 {
		p.ZeroGroup = node
	}
}

// batches sets the micro-batch and the number of micro-batches. A row without a batch is assumed to run one micro-batch
// per stage.
func (r *planReader) batches() (batch int, err error) {
	p := r.p
	batch = r.count("global_batch", 0)
	micro := r.count("micro_batch", 0)
	if batch < 1 {
		batch = p.DP * p.PP * max(1, micro)
	}
	if batch%p.DP != 0 {
		return 0, fmt.Errorf("dp %d must divide the batch of %d", p.DP, batch)
	}
	each := batch / p.DP
	if micro < 1 {
		for micro = min(r.defaults.micro, each); each%micro != 0; {
			micro--
		}
	}
	if each%micro != 0 {
		return 0, fmt.Errorf("micro_batch %d must divide a replica's share of %d sequences", micro, each)
	}
	p.MicroBatch, p.MicroBatches = micro, each/micro
	return batch, nil
}

// stages divides the layers as the row states, otherwise evenly. If they do not divide evenly, the larger chunks are in
// the middle, because the ends also have the embedding and the head.
func (r *planReader) stages(layers int) error {
	p := r.p
	if p.PP == 1 {
		p.VPP = 1
		return nil
	}
	chunks := p.PP * p.VPP
	if layers < chunks {
		return fmt.Errorf("%d layers are fewer than pp %d · vpp %d chunks", layers, p.PP, p.VPP)
	}
	p.AxisOrder += ",pp"
	if r.Text("vpp") == "" && strings.Contains(r.lower("schedule"), "interleaved") {
		p.VPP = chunksOf(layers / p.PP)
		chunks = p.PP * p.VPP
	}
	p.Schedule = scheduleOf(r.lower("schedule"), p.VPP)
	words := make([]string, chunks)
	extra := layers % chunks
	first := (chunks - extra) / 2
	for i := range words {
		n := layers / chunks
		if i >= first && i < first+extra {
			n++
		}
		words[i] = strconv.Itoa(n)
	}
	if given := r.Text("stage_layers"); given != "" {
		words = strings.FieldsFunc(given, func(c rune) bool { return c < '0' || c > '9' })
	}
	p.StageLayers = strings.Join(words, ",")
	return nil
}

// scheduleOf returns the row's schedule with this number of chunks per stage. DualPipe's bubble is that of zb-h1, see
// costmodel's haiEngine.
func scheduleOf(text string, chunks int) string {
	switch {
	case chunks > 1:
		return "interleaved"
	case strings.Contains(text, "gpipe"):
		return "gpipe"
	case strings.Contains(text, "zb-h1"), strings.Contains(text, "dualpipe"):
		return "zb-h1"
	}
	return "1f1b"
}

// recompute sets what is recomputed, in all blocks.
func (r *planReader) recompute() error {
	p := r.p
	switch text := r.lower("recompute"); {
	case text == "", strings.HasPrefix(text, "none"), text == "0", text == "no", text == "false":
		return nil
	case strings.HasPrefix(text, "selective") && byBlock.MatchString(r.Text("note")):
		p.Recompute, p.RecomputeLayers = "full", someBlocks(r.Text("note"), p.LargestChunk())
		return nil
	case strings.HasPrefix(text, "selective"):
		p.Recompute = "selective"
	case strings.HasPrefix(text, "full"), text == "1", text == "yes", text == "true":
		p.Recompute = "full"
	default:
		return fmt.Errorf("recompute is %q; it must be none, selective or full", r.Text("recompute"))
	}
	p.RecomputeLayers = p.LargestChunk()
	return nil
}

// chunksOf returns the assumed number of chunks of a stage with this many layers, for interleaved schedules without
// further information: the largest up to 4 that divides them.
func chunksOf(layers int) int {
	for n := 4; n > 1; n-- {
		if layers%n == 0 {
			return n
		}
	}
	return 1
}

// Notes of rows that recompute some blocks completely, although the cell says selective, and the amount of arithmetic.
var (
	byBlock = regexp.MustCompile(`(?i)every (n-th block|2nd layer)|selective layer ac`)
	used    = regexp.MustCompile(`HFU=([0-9.]+).*recomputed MFU[^=]*=([0-9.]+)`)
)

// someBlocks returns how many of the blocks are recomputed. One more forward pass is a third of a step's arithmetic, so
// the ratio of the hardware's flops to the model's determines the number, if the note has both. Otherwise it is every
// second block.
func someBlocks(note string, layers int) int {
	m := used.FindStringSubmatch(note)
	if m == nil {
		return (layers + 1) / 2
	}
	hardware, _ := strconv.ParseFloat(m[1], 64)
	model, _ := strconv.ParseFloat(m[2], 64)
	return max(1, min(layers, int(math.Round(3*(hardware/model-1)*float64(layers)))))
}
