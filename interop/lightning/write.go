package lightning

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// list collects values in their order.
type list []interop.Value

func (l *list) set(key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, Text: text, Plan: plan})
}

func (l *list) count(key string, n int, plan ...string) { l.set(key, strconv.Itoa(n), plan...) }

// reset removes an argument, or gives it its default.
func (l *list) reset(key string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Default: "null", Plan: plan})
}

// isDeepSpeed reports whether a target's plan is for DeepSpeed.
func isDeepSpeed(t *interop.Target) bool { return t.Job.Train.Engine == "deepspeed" }

// blockClass stands for the class of the model's block, which only the user knows.
const blockClass = "YOUR_MODULE.YourBlock"

// values returns the keys that say a plan.
func values(t *interop.Target) []interop.Value {
	p := &t.Plan
	nodes, devices := t.Nodes()
	var l list
	l.count(devicesKey, devices, "dp", "tp")
	l.count(nodesKey, nodes, "dp", "tp")
	l.set(precisionKey, precisionOf(p), "precision")
	l.strategy(t)
	l.count(accumulateKey, p.MicroBatches, "micro_batches")
	l.count(batchKey, p.MicroBatch, "micro_batch")
	return l
}

// valuesOfFixedData returns the keys that say a plan if LightningCLI has a fixed data module: the file then has its
// arguments without init_args.
func valuesOfFixedData(t *interop.Target) []interop.Value {
	all := values(t)
	for i, v := range all {
		if v.Key == batchKey {
			all[i].Key = shortBatchKey
		}
	}
	return all
}

// precisionOf returns Trainer's precision.
func precisionOf(p *ir.Plan) string {
	if p.Precision.FP8 {
		return "transformer-engine"
	}
	for _, known := range precisions {
		if known.plan == elements[p.Precision.Compute] {
			return known.name
		}
	}
	return "32-true"
}

// elements are the names of compute types.
var elements = map[ir.Elem]string{ir.BF16: "bf16", ir.F16: "fp16", ir.F32: "f32", ir.F64: "f64"}

// strategy adds the strategy with its arguments.
func (l *list) strategy(t *interop.Target) {
	p := &t.Plan
	switch {
	case isDeepSpeed(t):
		l.set(strategyKey, fmt.Sprintf("deepspeed_stage_%d", p.Zero), "zero")
	case p.TP > 1:
		l.set(classKey, strategiesPackage+"ModelParallelStrategy", "tp")
		l.count(dpKey, p.DP, "dp")
		l.count(tpKey, p.TP, "tp")
	case p.Zero == 0:
		l.set(strategyKey, "ddp", "zero")
	default:
		l.set(classKey, strategiesPackage+"FSDPStrategy", "zero")
		l.set(shardingKey, shardingOf(p), "zero", "zero_group")
		l.mesh(t)
		if p.Recompute == "none" {
			l.reset(policyKey, "recompute")
			l.reset(oldPolicyKey, "recompute")
			return
		}
		*l = append(*l, interop.Value{Key: policyKey, Text: `["` + blockClass + `"]`, Plan: []string{"recompute"},
			Why: "name the class of your model's block"})
	}
}

// shardingOf returns FSDP's strategy of a plan.
func shardingOf(p *ir.Plan) string {
	isGrouped := p.ZeroGroup < p.Replicas()
	switch {
	case isGrouped && p.Zero == 2:
		return "_HYBRID_SHARD_ZERO2"
	case isGrouped:
		return "HYBRID_SHARD"
	case p.Zero == 2:
		return "SHARD_GRAD_OP"
	}
	return "FULL_SHARD"
}

// mesh adds the groups of a hybrid strategy, unless they are the nodes.
func (l *list) mesh(t *interop.Target) {
	p := &t.Plan
	_, devices := t.Nodes()
	if p.ZeroGroup < p.Replicas() && p.ZeroGroup != devices {
		l.set(meshKey, fmt.Sprintf("[%d, %d]", p.DP/p.ZeroGroup, p.ZeroGroup), "zero_group")
		return
	}
	l.reset(meshKey, "zero_group")
}

// refusals returns why Lightning cannot run a plan.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	refuse := func(format string, args ...any) {
		diags.Addf(ir.Pos{File: "plan"}, CannotExpress, format, args...)
	}
	for _, degree := range []struct {
		key string
		n   int
	}{{"pp", p.PP}, {"cp", p.CP}, {"ep", p.EP}} {
		if degree.n > 1 {
			refuse("%s %d: Lightning's strategies have data and tensor parallelism; type: --set plan.%[1]s=1",
				degree.key,
				degree.n)
		}
	}
	switch {
	case isDeepSpeed(t) && p.TP > 1:
		refuse("tp %d: DeepSpeedStrategy has no tensor parallelism; type: --set plan.tp=1", p.TP)
	case isDeepSpeed(t) && p.Zero > 0 && p.ZeroGroup < p.Replicas():
		refuse("zero_group %d: DeepSpeedStrategy shards over all replicas; type: --set plan.zero_group=%d", p.ZeroGroup,
			p.Replicas())
	case isDeepSpeed(t) && p.Zero == 0:
		refuse("zero 0: DeepSpeedStrategy has stages 1 to 3; type: --engine fsdp")
	case !isDeepSpeed(t) && p.Zero == 1:
		refuse("zero 1: FSDPStrategy also shards gradients; type: --set plan.zero=2")
	case p.TP > 1 && p.Zero != 3 && p.Replicas() > 1:
		refuse("zero %d with tp: the code for ModelParallelStrategy shards parameters with fully_shard; type: --set "+
			"plan.zero=3", p.Zero)
	case p.TP > 1 && p.Zero > 0 && p.ZeroGroup < p.Replicas():
		refuse("zero_group %d with tp: ModelParallelStrategy has one data-parallel dimension; type: --set "+
			"plan.zero_group=%d",
			p.ZeroGroup, p.Replicas())
	}
	isWhole := p.Recompute == "full" && p.RecomputeEvery == 1 && p.RecomputeLayers == p.LargestChunk()
	if p.Recompute != "none" && !isWhole {
		refuse("%s: FSDPStrategy recomputes all blocks or none; type: --set plan.recompute=full --set "+
			"plan.recompute_layers=%d", p.RecomputeWords(), p.LargestChunk())
	}
	if p.Precision.FP8 && (p.Zero > 0 || p.TP > 1) {
		refuse("precision fp8: Lightning's Transformer Engine plugin runs with DDP; type: --set train.precision=bf16")
	}
	return diags
}

// write returns a Trainer in Python.
func write(t *interop.Target) ([]byte, error) {
	if err := refusals(t).Err(); err != nil {
		return nil, err
	}
	p := &t.Plan
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nfrom lightning.pytorch import Trainer\n", strings.Join(strings.Fields(p.String()), " "))
	text, class := pythonStrategy(t)
	if class != "" {
		fmt.Fprintf(&b, "from lightning.pytorch.strategies import %s\n", class)
	}
	nodes, devices := t.Nodes()
	fmt.Fprintf(&b, "\ntrainer = Trainer(\n    accelerator=%q,\n    devices=%d,\n    num_nodes=%d,\n    strategy=%s,\n",
		map[bool]string{true: "cpu", false: "gpu"}[t.Hardware.IsCPU()], devices, nodes, text)
	fmt.Fprintf(&b, "    precision=%q,\n    accumulate_grad_batches=%d,\n", precisionOf(p), p.MicroBatches)
	train := &t.Job.Train
	if train.Optimizer.ClipNorm > 0 {
		fmt.Fprintf(&b, "    gradient_clip_val=%s,\n", decimal(train.Optimizer.ClipNorm))
	}
	if train.Steps > 0 {
		fmt.Fprintf(&b, "    max_steps=%d,\n", train.Steps)
	}
	fmt.Fprintf(&b, ")\n# The batch size of your DataLoader must be %d. It is that of each replica.\n", p.MicroBatch)
	if p.Recompute != "none" {
		switch {
		case class == "FSDPStrategy":
			b.WriteString("# Replace YourBlock by the class of your model's transformer block.\n")
		default:
			b.WriteString("# Recompute every block: wrap it in torch.utils.checkpoint.checkpoint in your model.\n")
		}
	}
	if p.TP > 1 {
		b.WriteString("# Your configure_model must split the blocks over self.device_mesh[\"tensor_parallel\"]")
		if p.Zero > 0 {
			b.WriteString(",\n# and shard them with fully_shard over self.device_mesh[\"data_parallel\"]")
		}
		b.WriteString(".\n")
	}
	return []byte(b.String()), nil
}

// pythonStrategy returns the strategy as an argument, and the class to import; "" for a name.
func pythonStrategy(t *interop.Target) (text, class string) {
	var args []string
	for _, v := range values(t) {
		arg, isArg := strings.CutPrefix(v.Key, argsKey)
		switch {
		case v.IsAbsent:
		case v.Key == strategyKey:
			return strconv.Quote(v.Text), ""
		case v.Key == classKey:
			class = strings.TrimPrefix(v.Text, strategiesPackage)
		case v.Key == policyKey:
			args = append(args, arg+"={YourBlock}")
		case v.Key == shardingKey:
			args = append(args, arg+"="+strconv.Quote(v.Text))
		case v.Key == meshKey:
			args = append(args, arg+"=("+strings.Trim(v.Text, "[]")+")")
		case isArg:
			args = append(args, arg+"="+v.Text)
		}
	}
	return class + "(" + strings.Join(args, ", ") + ")", class
}
