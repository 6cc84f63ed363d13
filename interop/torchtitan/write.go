package torchtitan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// list collects values in their order.
type list []interop.Value

func (l *list) set(key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, Text: text, Plan: plan})
}

func (l *list) count(key string, n int, plan ...string) { l.set(key, strconv.Itoa(n), plan...) }

func (l *list) remove(key string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Plan: plan})
}

// choose sets a key if a condition holds. Otherwise torchtitan does not read it, and a file keeps what it has.
func (l *list) choose(is bool, key, text string, plan ...string) {
	if is {
		l.set(key, text, plan...)
		return
	}
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, IsUnused: true, Plan: plan})
}

// values returns the keys that say a plan.
func values(t *interop.Target) []interop.Value {
	p := &t.Plan
	var l list
	l.count(localKey, localBatch(p), "micro_batch", "micro_batches")
	l.count(globalKey, t.Job.Train.GlobalBatch, "micro_batches")
	l.count(seqKey, t.Job.Train.SeqLen)
	l.set(dtypeKey, "float32", "precision")
	l.set(mixedKey, mixedType(p), "precision")
	if p.Precision.FP8 {
		l.set(convertersKey, jsonText(float8Names[1:]), "precision")
	}
	l.sharding(p)
	l.count(tpKey, p.TP, "tp", "sp")
	l.count(cpKey, p.CP, "cp")
	l.choose(p.CP > 1, rotateKey, rotateMethods[p.CPKind], "cp_kind")
	l.count(ppKey, p.PP, "pp")
	l.pipeline(p)
	if t.Job.Config.Experts > 0 {
		l.count(epKey, p.EP, "ep")
		l.choose(p.EP > 1, etpKey, strconv.Itoa(p.ETP), "etp")
	}
	l.recompute(p)
	return l
}

// keepDerived returns values without those that torchtitan derives in every plan of the job, as the file has them:
// data_parallel_shard_degree stays -1 (all remaining devices), and global_batch_size stays -1 or absent if it is the
// local batch of all replicas. model.converters stays if it has a converter to FP8. local_batch_size stays if it is the
// batch of one of several passes through a pipeline, unless the micro-batch does not divide it.
func keepDerived(doc interop.Document, t *interop.Target, all []interop.Value) []interop.Value {
	minusOne := strconv.Itoa(rest)
	for i, v := range all {
		text, isSet := doc.Get(v.Key)
		switch strings.TrimPrefix(v.Key, optionPrefix) {
		case localKey:
			local, err := strconv.Atoi(text)
			if err != nil {
				local = defaultLocal
			}
			all[i].IsNeeded = t.Plan.PP > 1 && local%t.Plan.MicroBatch != 0
		case shardKey:
			if text == minusOne {
				all[i].Text = minusOne
			}
		case convertersKey:
			names := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("[]\", ", c) })
			if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(float8Names, name) }) {
				all[i].Text = text
			}
		case globalKey:
			if (!isSet || text == minusOne) && localBatch(&t.Plan)*t.Plan.DP == t.Job.Train.GlobalBatch {
				all[i].Text, all[i].IsAbsent = minusOne, !isSet
			}
		}
	}
	return all
}

// localBatch returns the local batch of a plan, which has all micro-batches of a pipeline.
func localBatch(p *ir.Plan) int {
	if p.PP > 1 {
		return p.MicroBatch * p.MicroBatches
	}
	return p.MicroBatch
}

// rotateMethods maps how keys and values are exchanged.
var rotateMethods = map[string]string{"gather": "allgather", "ring": "alltoall"}

// mixedType returns the type of parameters in GEMMs.
func mixedType(p *ir.Plan) string {
	if p.Precision.Compute == ir.F32 {
		return "float32"
	}
	return "bfloat16"
}

// sharding adds the degrees of data parallelism. zero_group has dp_shard · cp ranks.
func (l *list) sharding(p *ir.Plan) {
	shard := 1
	if p.Zero > 0 {
		shard = max(1, p.ZeroGroup/p.CP)
	}
	l.count(replicateKey, p.DP/shard, "dp", "zero", "zero_group")
	l.count(shardKey, shard, "dp", "zero", "zero_group")
	policy := "default"
	if p.PP == 1 && p.Zero == 2 {
		policy = "never"
	}
	l.set(reshardKey, policy, "zero")
}

// pipeline adds the schedule and the layers of each chunk. The chunks are listed unless torchtitan's own division
// gives the same ones.
func (l *list) pipeline(p *ir.Plan) {
	isPiped := p.PP > 1
	name := ""
	multi := false
	if s := scheduleOf(p.Schedule); s != nil {
		name, multi = s.name, s.multi
	}
	l.choose(isPiped, scheduleKey, name, "schedule", "vpp")
	l.choose(isPiped, pipeMicroKey, strconv.Itoa(p.MicroBatch), "micro_batch")
	counts := countsOf(p.StageLayers)
	even := split{stages: p.PP, multi: multi}
	for _, n := range counts {
		even.layers += n
	}
	even.perChunk = (even.layers + len(counts) - 1) / max(1, len(counts))
	isEven := isPiped && even.makes(counts)
	if isEven || !isPiped {
		l.choose(isEven, perChunkKey, strconv.Itoa(even.perChunk), "stage_layers", "vpp")
	} else {
		l.remove(perChunkKey, "stage_layers", "vpp")
	}
	l.choose(isEven, firstLessKey, "0", "stage_layers")
	l.choose(isEven, lastLessKey, "0", "stage_layers")
	if isEven {
		l.remove(modulesKey, "stage_layers", "vpp")
		return
	}
	l.choose(isPiped, modulesKey, jsonText(modules(counts)), "stage_layers", "vpp")
}

// makes reports whether torchtitan divides the layers into these chunks.
func (s split) makes(counts []int) bool {
	n, err := s.count()
	if err != nil || n != len(counts) {
		return false
	}
	got, err := s.counts(n)
	return err == nil && slices.Equal(got, counts)
}

// countsOf returns the layers of each chunk.
func countsOf(text string) (out []int) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err == nil {
			out = append(out, n)
		}
	}
	return out
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // lists of strings have a text
	}
	return strings.ReplaceAll(string(text), `","`, `", "`)
}

// recompute adds what is recomputed.
func (l *list) recompute(p *ir.Plan) {
	mode, option := p.Recompute, ""
	switch every := everyOf(p); {
	case p.Recompute == "selective":
		option = "op"
	case p.Recompute == "full" && every > 1:
		mode, option = "selective", strconv.Quote(strconv.Itoa(every))
	}
	l.set(acKey, mode, "recompute", "recompute_layers")
	l.choose(option != "", acOptionKey, option, "recompute", "recompute_layers")
}

// everyOf returns the number n with which every n-th block makes as many as the plan recomputes; 0 if there is none.
// torchtitan counts all blocks of a stage; planc counts those of a chunk.
func everyOf(p *ir.Plan) int {
	if p.Recompute != "full" || p.RecomputeLayers < 1 {
		return 0
	}
	largest := p.LargestChunk()
	for n := 1; n <= largest; n++ {
		if largest/n == p.RecomputeLayers {
			return n
		}
	}
	return 0
}

// refusals returns why torchtitan cannot run a plan. Each names what to set to get one that it can.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	refuse := func(format string, args ...any) {
		diags.Addf(ir.Pos{File: "plan"}, CannotExpress, format, args...)
	}
	c := t.Job.Config
	switch {
	case p.PP > 1 && scheduleOf(p.Schedule) == nil:
		refuse("schedule %s: torchtitan has gpipe, 1f1b, interleaved and zb-v; type: --set plan.schedule=1f1b",
			p.Schedule)
	case p.Precision.Compute == ir.F16:
		refuse("precision fp16: torchtitan trains in bf16 or f32; type: --set train.precision=bf16")
	case p.Precision.Compute == ir.F64:
		refuse("precision f64: torchtitan trains in bf16 or f32; type: --set train.precision=f32")
	}
	if p.TP > 1 && !p.SP {
		refuse("tp %d without sp: torchtitan always applies sequence parallelism with tp; type: --set "+
			"plan.sp=true", p.TP)
	}
	if p.CP > 1 && rotateMethods[p.CPKind] == "" {
		refuse("cp_kind %s: torchtitan has gather and ring; type: --set plan.cp_kind=gather", p.CPKind)
	}
	if p.RecomputeSplit {
		refuse("recompute_split: torchtitan does not shard saved block inputs apart from sp; type: --set " +
			"plan.recompute_split=false")
	}
	diags = append(diags, refuseSharding(p)...)
	diags = append(diags, refuseRecompute(p)...)
	if c.Experts > 0 && p.ETP != p.TP && (p.EP == 1 || p.ETP != 1) {
		refuse("ep %d · etp %d: torchtitan has etp %d, or with ep above 1 also etp 1; type: --set plan.etp=%[3]d", p.EP,
			p.ETP, p.TP)
	}
	if shard := max(1, p.ZeroGroup/p.CP); c.Experts > 0 && p.EP > 1 && shard*p.CP*p.TP%(p.EP*p.ETP) != 0 {
		refuse("ep %d: torchtitan takes ep from the ranks of a zero_group and tp, which are %d; type: --set "+
			"plan.zero_group=%d", p.EP, shard*p.CP*p.TP, p.Replicas())
	}
	return diags
}

// refuseSharding returns what is wrong with how a plan shards parameters.
func refuseSharding(p *ir.Plan) (diags ir.Diags) {
	refuse := func(format string, args ...any) {
		diags.Addf(ir.Pos{File: "plan"}, CannotExpress, format, args...)
	}
	others := p.TP * p.PP * p.CP
	switch {
	case p.Zero == 0 && p.CP > 1:
		refuse("zero 0 with cp %d: torchtitan shards parameters over cp; type: --set plan.zero=3", p.CP)
	case p.Zero == 0 && p.DP > 1 && others > 1:
		refuse("zero 0 with tp, pp or cp: torchtitan's DDP runs alone; type: --set plan.zero=%d", max(1,
			4-3*min(p.PP, 2)))
	case p.Zero == 0 && others > 1 && p.Precision.Compute == ir.BF16:
		refuse("dp 1 in bf16: torchtitan switches mixed precision off with tp or pp, unless FSDP shards over dp or " +
			"cp; type: " +
			"--set plan.dp=2")
	case p.Zero == 1 && p.PP == 1:
		refuse("zero 1 without a pipeline: FSDP also shards gradients; type: --set plan.zero=2")
	case p.Zero > 0 && p.ZeroGroup%p.CP != 0:
		refuse("zero_group %d: torchtitan shards over dp_shard × cp, and cp is %d; type: --set plan.zero_group=%d",
			p.ZeroGroup, p.CP, p.Replicas())
	}
	return diags
}

// refuseRecompute returns what is wrong with what a plan recomputes.
func refuseRecompute(p *ir.Plan) (diags ir.Diags) {
	refuse := func(format string, args ...any) {
		diags.Addf(ir.Pos{File: "plan"}, CannotExpress, format, args...)
	}
	largest := p.LargestChunk()
	switch {
	case p.RecomputeEvery > 1:
		refuse("recompute_every %d: torchtitan saves the input of every recomputed block; type: --set "+
			"plan.recompute_every=1", p.RecomputeEvery)
	case p.Recompute == "full" && everyOf(p) == 0:
		refuse("recompute full %d blocks: torchtitan recomputes every n-th block, which are %s of %d; type: --set "+
			"plan.recompute_layers=%d", p.RecomputeLayers, possibleBlocks(largest), largest, nextBlocks(p))
	case p.Recompute == "selective" && p.RecomputeLayers < largest:
		refuse("recompute selective %d blocks: torchtitan applies it to all %d; type: --set "+
			"plan.recompute_layers=%[2]d",
			p.RecomputeLayers, largest)
	}
	return diags
}

// possibleBlocks lists how many of some blocks can be every n-th one: "1, 2, 4 or 8".
func possibleBlocks(largest int) string {
	var words []string
	for n := largest; n >= 1; n-- {
		word := strconv.Itoa(largest / n)
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// nextBlocks returns the least number of blocks, not below the plan's, that torchtitan can recompute.
func nextBlocks(p *ir.Plan) int {
	largest := p.LargestChunk()
	best := largest
	for n := 1; n <= largest; n++ {
		if largest/n >= p.RecomputeLayers {
			best = min(best, largest/n)
		}
	}
	return best
}

// write returns a whole file for a plan.
func write(t *interop.Target) ([]byte, error) {
	diags := tomlRefusals(t)
	name, flavor, note := nameOf(t.Job.Config)
	if name == "" {
		diags.Addf(ir.Pos{File: "model"}, CannotExpress, "torchtitan 0.2 has no model like %s: it has llama3, qwen3 "+
			"and "+
			"deepseek_v3", t.Job.Config.Family)
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	var l list
	l.set("job.description", fmt.Sprintf("%s, planned by planc: %s", t.Job.Name, &t.Plan))
	l.set("model.name", name)
	l.set("model.flavor", flavor)
	l.set("model.hf_assets_path", "./assets/hf/"+flavor)
	l.set("training.dataset", "c4")
	l = append(l, values(t)...)
	note += l.recipe(t)
	l.set("compile.enable", "true")
	data, err := tree.Write(tree.TOML, l)
	return append([]byte(note), data...), err
}

// families maps planc's model families to torchtitan's models.
var families = map[string]string{spec.Llama: "llama3", spec.Qwen3: "qwen3", spec.Qwen3MoE: "qwen3",
	spec.DeepseekV2: "deepseek_v3", spec.DeepseekV3: "deepseek_v3"}

// nameOf returns the model and the flavor of a configuration. If torchtitan has no flavor of its shape, note says in a
// comment which one to add.
func nameOf(c *spec.Config) (name, flavor, note string) {
	if m := modelOf(c); m != nil {
		return m.name, m.flavor, ""
	}
	name = families[c.Family]
	if name == "" {
		return "", "", ""
	}
	flavor = "custom"
	return name, flavor, fmt.Sprintf("# torchtitan 0.2.2 has no flavor of this shape. Add %q to "+
		"torchtitan/models/%s/__init__.py:\n# dim=%d, n_layers=%d, n_heads=%d, n_kv_heads=%d, vocab_size=%d, an MLP "+
		"of width "+
		"%d\n", flavor, name, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Vocab, c.FFN)
}

// recipe adds the optimizer, the schedule and the length of the training. note is a comment about what torchtitan
// cannot say.
func (l *list) recipe(t *interop.Target) (note string) {
	train := &t.Job.Train
	o, s := &train.Optimizer, &train.Schedule
	names := map[string]string{"adamw": "AdamW", "adam": "Adam"}
	if name := names[o.Kind]; name != "" {
		l.set("optimizer.name", name)
		l.set("optimizer.beta1", decimal(o.Betas[0]))
		l.set("optimizer.beta2", decimal(o.Betas[1]))
	} else {
		note = fmt.Sprintf("# train.optimizer.kind %s is not written: torchtitan has AdamW and Adam.\n", o.Kind)
	}
	l.set("optimizer.lr", decimal(o.LR))
	l.set("optimizer.eps", decimal(o.Eps))
	l.set("optimizer.weight_decay", decimal(o.WeightDecay))
	l.set("training.max_norm", decimal(o.ClipNorm))
	if train.Steps > 0 {
		l.count("training.steps", train.Steps)
	}
	l.count("lr_scheduler.warmup_steps", s.Warmup)
	switch s.Kind {
	case "linear", "cosine":
		l.set("lr_scheduler.decay_type", s.Kind)
	case "constant":
		l.set("lr_scheduler.decay_ratio", "0.0")
	case "wsd":
		if train.Steps > 0 {
			l.set("lr_scheduler.decay_ratio", decimal(float64(s.Decay)/float64(train.Steps)))
		} else {
			note += fmt.Sprintf("# train.schedule.decay %d is not written: lr_scheduler.decay_ratio is its part of "+
				"training.steps.\n", s.Decay)
		}
	default:
		note += fmt.Sprintf("# train.schedule.kind %s is not written: torchtitan has linear, sqrt and cosine decay.\n",
			s.Kind)
	}
	if s.MinLR > 0 && o.LR > 0 && s.Kind != "constant" {
		l.set("lr_scheduler.min_lr_factor", decimal(s.MinLR/o.LR))
	}
	return note
}
