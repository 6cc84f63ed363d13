package lightning

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// reader reads a file.
type reader struct {
	*keytable.Reader // reads the keys of fit, which can be a part of the file
	file             *tree.Doc
	devices          int // 0: not known
	perNode          int // 0: not known
	strategy         *strategy
	tp               int
}

// Keys that several functions name.
const (
	strategyKey   = "trainer.strategy"
	classKey      = "trainer.strategy.class_path"
	argsKey       = "trainer.strategy.init_args."
	shardingKey   = argsKey + "sharding_strategy"
	policyKey     = argsKey + "activation_checkpointing_policy"
	oldPolicyKey  = argsKey + "activation_checkpointing"
	meshKey       = argsKey + "device_mesh"
	stageKey      = argsKey + "stage"
	tpKey         = argsKey + "tensor_parallel_size"
	dpKey         = argsKey + "data_parallel_size"
	devicesKey    = "trainer.devices"
	nodesKey      = "trainer.num_nodes"
	precisionKey  = "trainer.precision"
	accumulateKey = "trainer.accumulate_grad_batches"
	batchKey      = "data.init_args.batch_size"
	shortBatchKey = "data.batch_size"
)

// take records that a key sets a field, or sets the field to the key's default if the file does not have it.
func (r *reader) take(key, path, value string) {
	if r.Has(key) {
		r.Take(key, interop.Field{Path: path, Value: value})
		return
	}
	r.Import.DefaultField(path, value, "default of "+key)
}

func (r *reader) read() {
	r.readDevices()
	r.readStrategy()
	if r.strategy != nil && len(r.Diags) == 0 {
		r.readDegrees()
		r.readZero()
		if r.strategy.kind == deepspeed || r.strategy.kind == modelParallel {
			r.WholeGroup(r.devices)
		}
		r.readRecompute()
		r.readBatch()
	}
	r.readPrecision()
	r.readRecipe()
	r.accountOffload()
	r.ClearDefaults()
	r.accountFile()
}

// accountFile accounts for every key in the order of the file. The keys of other subcommands than fit do not train.
func (r *reader) accountFile() {
	if r.file.Root == r.Doc.Root {
		r.Finish(r.unknown)
		return
	}
	for _, top := range r.file.Root.Fields {
		if top.Value == r.Doc.Root {
			r.Finish(r.unknown)
			continue
		}
		only := tree.Node{Kind: strict.Map, Fields: []*tree.Field{top}}
		only.Walk(func(path string, f *tree.Field) {
			k := interop.Key{Pos: f.Pos, Name: path, Value: f.Value.Flow()}
			r.Import.Account(k, interop.NoEffect, "not below "+fitSection)
		})
	}
}

// unknown refuses an argument that Lightning does not have. Other keys are arguments of the user's own CLI.
func (r *reader) unknown(path string, f *tree.Field) {
	if !strings.HasPrefix(path, "trainer.") {
		r.Account(path, interop.NoEffect, "an argument of your own")
		return
	}
	r.Account(path, interop.Unsupported, "LightningCLI refuses it")
	d := ir.Diag{Pos: f.Pos, Code: strict.UnknownKey, Fix: Keys.Nearest(path),
		Msg: fmt.Sprintf("Lightning 2.6 has no argument %s", path)}
	if strings.HasPrefix(path, argsKey) && r.strategy != nil && (r.strategy.kind == ddp || r.strategy.kind == fsdp) {
		r.Account(path, interop.Unsupported, "an argument of PyTorch's wrapper, which planc does not know")
		if fix := Keys.Nearest(path); fix != "" && !r.Has(argsKey+fix) {
			r.Import.Warn(f.Pos, "%s is no argument of Lightning's strategy, which passes it to PyTorch's wrapper; "+
				"did you mean %s?", strings.TrimPrefix(path, argsKey), fix)
		}
		return // **kwargs
	}
	r.Diags = append(r.Diags, d)
}

// readDevices reads the numbers of devices and nodes.
func (r *reader) readDevices() {
	nodes, ok := r.Positive(nodesKey)
	if !ok {
		nodes = 1
	}
	n := r.Node(devicesKey)
	switch {
	case n == nil || n.Text == "auto" || n.Text == "-1":
		if r.devices > 0 && r.devices%nodes == 0 {
			r.perNode = r.devices / nodes
		}
		r.Account(devicesKey, interop.Planned, "all devices of a node: give their number (--devices)")
		r.setNodes(nodes, n)
	case n.Kind == strict.List:
		r.perNode = len(n.Items)
	case strings.Contains(n.Text, ","):
		r.perNode = strings.Count(strings.Trim(n.Text, ","), ",") + 1
	default:
		if count, ok := r.Positive(devicesKey); ok {
			r.perNode = count
		}
	}
	if r.perNode == 0 {
		return
	}
	total := r.perNode * nodes
	if r.devices > 0 && r.devices != total {
		r.Wrong(devicesKey, Conflict, "", "%s %d × %s %d are %d devices, not %d: change one of them, or the number "+
			"of devices "+
			"that you give", devicesKey, r.perNode, nodesKey, nodes, total, r.devices)
	}
	r.devices = total
	r.Import.Devices, r.Import.DevicesPerNode = total, r.perNode
	if r.Has(devicesKey) && n.Text != "auto" && n.Text != "-1" {
		keytable.TakeDevices(r.Reader, devicesKey, total, nodesKey, nodes)
	} else {
		r.Take(nodesKey)
	}
}

// setNodes says the number of nodes whose devices the file does not say. devices is nil if the key is missing.
func (r *reader) setNodes(nodes int, devices *tree.Node) {
	why := "missing"
	if devices != nil {
		why = devices.Text
	}
	if nodes > 1 {
		r.Import.Nodes = interop.NodeCount{N: nodes, Name: nodesKey, Pos: r.Node(nodesKey).Pos,
			Why: devicesKey + " is " + why}
	}
}

// readStrategy reads the strategy: a name, or a class with arguments.
func (r *reader) readStrategy() {
	n := r.Node(strategyKey)
	switch {
	case n == nil:
		r.strategy = strategyNamed("auto")
	case n.Kind == strict.Map:
		class := r.Text(classKey)
		r.strategy = strategyOfClass(class)
		if r.strategy == nil {
			r.Wrong(classKey, strict.UnknownValue, "", "%s is %q; planc knows DDPStrategy, FSDPStrategy, "+
				"DeepSpeedStrategy, "+
				"ModelParallelStrategy and SingleDeviceStrategy of %s", classKey, class,
				strings.TrimSuffix(strategiesPackage,
					"."))
		}
	default:
		r.strategy = strategyNamed(n.Text)
		if r.strategy == nil {
			_, _ = r.OneOf(strategyKey, strategyNames()...) // reports it
		}
	}
	if r.strategy == nil {
		return
	}
	switch r.strategy.kind {
	case unpriced:
		r.Account(strategyKey, interop.Unsupported, "planc does not price this strategy")
	case deepspeed:
		r.Import.Engine = "deepspeed"
	}
	r.Import.DefaultField("train.engine", r.Import.Engine, "strategy "+r.strategy.name)
}

// accountOffload accounts for what the strategy moves off the device.
func (r *reader) accountOffload() {
	if r.strategy == nil || r.strategy.offload == "" {
		return
	}
	device := "cpu"
	if strings.HasSuffix(r.strategy.name, "nvme") {
		device = "nvme"
	}
	r.Account(r.strategySource(), interop.Unsupported, interop.OffloadNote(r.strategy.offload, device))
}

// strategySource is the key that says the strategy.
func (r *reader) strategySource() string {
	if r.Has(classKey) {
		return classKey
	}
	return strategyKey
}

// readDegrees reads the parallel degrees. Lightning itself has data and tensor parallelism only.
func (r *reader) readDegrees() {
	r.tp = 1
	if r.strategy.kind == modelParallel {
		r.readModelParallel()
	}
	r.Import.DefaultField("plan.tp", strconv.Itoa(r.tp), "strategy "+r.strategy.name)
	for _, key := range []string{"pp", "cp", "ep"} {
		r.Import.DefaultField("plan."+key, "1", "strategy "+r.strategy.name)
	}
	if r.devices > 0 && r.devices%r.tp == 0 {
		r.Import.DefaultField("plan.dp", strconv.Itoa(r.devices/r.tp), devicesKey+" × "+nodesKey)
	}
}

// readModelParallel reads the sizes of ModelParallelStrategy. By default tensor parallelism is within a node, and data
// parallelism across nodes.
func (r *reader) readModelParallel() {
	tp, hasTP := r.size(tpKey)
	dp, hasDP := r.size(dpKey)
	switch {
	case hasTP:
		r.tp = tp
	case hasDP && r.devices > 0 && r.devices%dp == 0:
		r.tp = r.devices / dp
	case r.perNode > 0:
		r.tp = r.perNode
	}
	if hasTP && hasDP && r.devices > 0 && tp*dp != r.devices {
		r.Wrong(tpKey, Conflict, "", "%s %d × %s %d must be the %d devices: %s: %d", tpKey, tp, dpKey, dp,
			r.devices, tpKey,
			r.devices/max(1, dp))
	}
	r.take(tpKey, "plan.tp", strconv.Itoa(r.tp))
	if hasDP {
		r.Take(dpKey, interop.Field{Path: "plan.dp", Value: strconv.Itoa(dp)})
	}
}

// size returns a size that may be auto.
func (r *reader) size(key string) (int, bool) {
	if r.Text(key) == "auto" {
		r.Account(key, interop.Planned, "")
		return 0, false
	}
	return r.Positive(key)
}

// readZero reads how state is sharded.
func (r *reader) readZero() {
	s := r.strategy
	source := r.strategySource()
	switch s.kind {
	case fsdp:
		r.readSharding()
	case deepspeed:
		r.readStage()
	case modelParallel:
		r.Account(dpKey, interop.Planned, "your configure_model decides whether fully_shard shards the model")
		zero := "3"
		if r.devices == r.tp {
			zero = "0" // nothing to shard over
		}
		r.Import.DefaultField("plan.zero", zero, "strategy "+s.name)
	default:
		r.take(source, "plan.zero", "0")
	}
}

// readSharding reads FSDP's strategy and its groups.
func (r *reader) readSharding() {
	name, ok := r.OneOf(shardingKey, shardingNames()...)
	if !ok {
		name = shardings[0].name
	}
	s := shardingNamed(name)
	source := r.strategySource()
	if ok {
		source = shardingKey
	}
	r.take(source, "plan.zero", strconv.Itoa(s.zero))
	group := r.devices
	if mesh := r.Node(meshKey); mesh != nil {
		if len(mesh.Items) != 2 {
			r.Wrong(meshKey, strict.WrongType, "", "%s must be a list of two numbers: replicas, and ranks that "+
				"share one copy",
				meshKey)
			return
		}
		group, _ = mesh.Items[1].Int()
		source = meshKey
	} else if s.isLocal {
		group = r.perNode
	}
	if s.zero > 0 && group > 1 {
		r.take(source, "plan.zero_group", strconv.Itoa(group))
	}
}

// readStage reads DeepSpeed's stage, also from an inline config.
func (r *reader) readStage() {
	zero, source := r.strategy.zero, r.strategySource()
	if r.Has(classKey) {
		zero = 2 // default of DeepSpeedStrategy
	}
	if n, ok := r.Int(stageKey); ok {
		zero, source = n, stageKey
	}
	const isOn = argsKey + "zero_optimization"
	if on, ok := r.Bool(isOn); ok && !on { // then the stage has no effect
		zero, source = 0, isOn
	}
	config := argsKey + "config"
	if n, ok := r.Int(config + ".zero_optimization.stage"); ok {
		zero, source = n, config+".zero_optimization.stage"
	} else if n := r.Node(config); n != nil && n.Kind == strict.String {
		r.Account(config, interop.Unsupported, "planc reads this file as one of DeepSpeed: planc check "+n.Text)
	}
	if zero < 0 || zero > 3 {
		r.Wrong(source, strict.OutOfRange, "", "%s is %d; it must be 0, 1, 2 or 3", source, zero)
		return
	}
	r.take(source, "plan.zero", strconv.Itoa(zero))
}

// readRecompute reads whether blocks are recomputed. A policy wraps whole blocks: no strategy recomputes selectively.
// Without a policy, none is recomputed, unless the model's own code does.
func (r *reader) readRecompute() {
	key := policyKey
	if r.Has(oldPolicyKey) {
		key = oldPolicyKey
	}
	if r.Has(key) {
		r.Take(key, interop.Field{Path: "plan.recompute", Value: "full"})
		keytable.WholeInputs(r.Import, key)
		return
	}
	r.Import.DefaultField("plan.recompute", "none", "no activation_checkpointing_policy; pin plan.recompute if your "+
		"model's code recomputes activations")
}
