package torchtitan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// reader reads a TOML file.
type reader struct {
	*keytable.Reader
	devices int          // 0: not known
	given   *spec.Config // the model that the user gives instead of the file's; nil if none
	layers  int          // of the model; 0: not known
	experts bool         // the model may have experts
	dims    dims
	largest int // layers of the largest chunk; 0: not known
	// model is torchtitan's own model that is trained; "" if another replaces it, or code of the user's may.
	model string
}

// dims are torchtitan's parallel degrees.
type dims struct{ replicate, shard, tp, pp, cp, ep, etp int }

// rest is the value of data_parallel_shard_degree that stands for all remaining devices.
const rest = -1

// fixed is the number of devices without data_parallel_shard_degree.
func (d *dims) fixed() int { return keytable.Product(d.replicate, d.tp, d.pp, d.cp) }

// isSharded reports whether torchtitan applies FSDP.
func (d *dims) isSharded() bool { return d.shard != 1 || d.cp > 1 }

// Take records that a key sets fields, if the file has the key.
func (r *reader) Take(key string, fields ...interop.Field) {
	if r.Has(key) {
		r.Reader.Take(key, fields...)
	}
}

// TakeInt records that a key sets a field to a number, if the file has the key.
func (r *reader) TakeInt(key, field string, value int) {
	r.Take(key, interop.Field{Path: field, Value: strconv.Itoa(value)})
}

// Keys that several functions name.
const (
	parallelism   = "parallelism."
	replicateKey  = parallelism + "data_parallel_replicate_degree"
	shardKey      = parallelism + "data_parallel_shard_degree"
	reshardKey    = parallelism + "fsdp_reshard_after_forward"
	tpKey         = parallelism + "tensor_parallel_degree"
	ppKey         = parallelism + "pipeline_parallel_degree"
	scheduleKey   = parallelism + "pipeline_parallel_schedule"
	pipeMicroKey  = parallelism + "pipeline_parallel_microbatch_size"
	perChunkKey   = parallelism + "pipeline_parallel_layers_per_stage"
	firstLessKey  = parallelism + "pipeline_parallel_first_stage_less_layers"
	lastLessKey   = parallelism + "pipeline_parallel_last_stage_less_layers"
	modulesKey    = parallelism + "module_fqns_per_model_part"
	cpKey         = parallelism + "context_parallel_degree"
	rotateKey     = parallelism + "context_parallel_rotate_method"
	epKey         = parallelism + "expert_parallel_degree"
	etpKey        = parallelism + "expert_tensor_parallel_degree"
	localKey      = "training.local_batch_size"
	globalKey     = "training.global_batch_size"
	seqKey        = "training.seq_len"
	dtypeKey      = "training.dtype"
	mixedKey      = "training.mixed_precision_param"
	convertersKey = "model.converters"
	acKey         = "activation_checkpoint.mode"
	acOptionKey   = "activation_checkpoint.selective_ac_option"
)

// read reads the whole file.
func (r *reader) read() {
	r.refuseDialects()
	r.readModel()
	r.readDims()
	r.refuseUnable()
	if len(r.Diags) == 0 {
		r.readZero()
		batch, recipe := &batchReader{r}, &recipeReader{r}
		batch.readPipeline()
		r.readExperts()
		batch.readBatch()
		recipe.readPrecision()
		recipe.readRecompute()
		recipe.readRecipe()
	}
	r.ClearDefaults()
	r.Finish(r.unknown)
	r.Diags = slices.CompactFunc(sorted(r.Diags), func(a, b ir.Diag) bool { return a == b })
}

// sorted returns errors in the order of the file.
func sorted(diags ir.Diags) ir.Diags {
	slices.SortStableFunc(diags, func(a, b ir.Diag) int {
		return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column, strings.Compare(a.Msg, b.Msg))
	})
	return diags
}

// isTable reports whether torchtitan has keys below a path.
func isTable(path string) bool {
	return slices.ContainsFunc(Keys.Rows, func(row keytable.Row) bool { return strings.HasPrefix(row.Key, path+".") })
}

// unknown refuses a key, as torchtitan does, unless the file names a module with keys of its own.
func (r *reader) unknown(path string, f *tree.Field) {
	if f.Value.Kind == strict.Map && isTable(path) {
		r.Account(path, interop.NoEffect, "") // a table without keys
		return
	}
	if r.Text("job.custom_config_module") != "" {
		r.Account(path, interop.Unsupported, "a key of job.custom_config_module, which planc does not know")
		return
	}
	r.Account(path, interop.Unsupported, "torchtitan 0.2 refuses it")
	if _, ok := otherDialects[path]; ok || inSection(path) != "" || otherSections[path] != "" {
		return // refuseDialects reports it
	}
	d := ir.Diag{Pos: f.Pos, Code: strict.UnknownKey, Msg: fmt.Sprintf("torchtitan 0.2 has no key %s", path)}
	if near := Keys.Nearest(path); near != "" {
		d.Fix = near
	}
	r.Diags = append(r.Diags, d)
}

// degree returns a degree that must be at least 1. If the file does not have it, it is 1.
func (r *reader) degree(key string) int {
	n, ok := r.Positive(key)
	if !ok {
		return 1
	}
	return n
}

// readDims reads the degrees and checks that they make the number of devices.
func (r *reader) readDims() {
	d := &r.dims
	*d = dims{replicate: r.degree(replicateKey), shard: rest, tp: r.degree(tpKey), pp: r.degree(ppKey),
		cp: r.degree(cpKey), ep: r.degree(epKey), etp: r.degree(etpKey)}
	if n, ok := r.Int(shardKey); ok {
		d.shard = n
		if n < 1 && n != rest {
			r.Wrong(shardKey, strict.OutOfRange, "-1", "%s is %d; it must be at least 1, or -1 for all remaining "+
				"devices",
				shardKey, n)
			return
		}
	}
	total := keytable.Product(d.fixed(), max(d.shard, 1))
	switch {
	case total > mostDevices:
		r.Wrong(r.largestDegree(), strict.OutOfRange, "", "%d replicas × %d shards × cp %d × tp %d × pp %d are more "+
			"than %d devices: lower one of these degrees", d.replicate, max(d.shard, 1), d.cp, d.tp, d.pp, mostDevices)
	case d.shard != rest && r.devices > 0 && total != r.devices:
		r.Wrong(shardKey, Conflict, "", "%d replicas × %d shards × cp %d × tp %d × pp %d are %d devices, not %d: set "+
			"%s = -1, which means all remaining devices", d.replicate, d.shard, d.cp, d.tp, d.pp, total, r.devices,
			shardKey)
	case d.shard == rest && r.devices%d.fixed() != 0:
		r.Wrong(r.largestDegree(), Conflict, "", "%d replicas × cp %d × tp %d × pp %d are %d devices, which do not "+
			"divide "+
			"%d: lower one of these degrees", d.replicate, d.cp, d.tp, d.pp, d.fixed(), r.devices)
	case d.shard != rest:
		r.Import.Devices = total
		r.devices = r.Import.Devices
	case r.devices > 0:
		d.shard = r.devices / d.fixed()
	}
	r.TakeInt(tpKey, "plan.tp", d.tp)
	r.TakeInt(ppKey, "plan.pp", d.pp)
	r.TakeInt(cpKey, "plan.cp", d.cp)
	r.Import.DefaultField("plan.tp", strconv.Itoa(d.tp), "default of "+tpKey)
	r.Import.DefaultField("plan.pp", strconv.Itoa(d.pp), "default of "+ppKey)
	r.Import.DefaultField("plan.cp", strconv.Itoa(d.cp), "default of "+cpKey)
	r.contextKind()
	if d.tp > 1 {
		r.Import.DefaultField("plan.sp", "true", tpKey+": torchtitan always applies sequence parallelism with it")
	}
}

// mostDevices is far above the number of devices of any cluster.
const mostDevices = 100_000_000

// largestDegree returns the key of the largest degree.
func (r *reader) largestDegree() string {
	d := &r.dims
	best, largest := ppKey, d.pp
	for key, n := range map[string]int{replicateKey: d.replicate, tpKey: d.tp, cpKey: d.cp, shardKey: d.shard} {
		if n > largest || n == largest && key < best {
			best, largest = key, n
		}
	}
	return best
}

// contextKinds maps how keys and values are exchanged.
var contextKinds = map[string]string{"allgather": "gather", "alltoall": "ring"}

func (r *reader) contextKind() {
	word, ok := r.OneOf(rotateKey, "allgather", "alltoall")
	switch {
	case r.dims.cp == 1:
		return
	case ok:
		r.Take(rotateKey, interop.Field{Path: "plan.cp_kind", Value: contextKinds[word]})
	default:
		r.Import.DefaultField("plan.cp_kind", "gather", "default of "+rotateKey)
	}
}

// readZero reads how FSDP shards. In a pipeline, PyTorch keeps the gathered parameters and reduces gradients once a
// step, which is ZeRO 1 with whole gradients.
func (r *reader) readZero() {
	d := &r.dims
	policy, _ := r.OneOf(reshardKey, "default", "always", "never")
	zero, note := "3", ""
	switch {
	case !d.isSharded():
		zero = "0"
	case d.pp > 1:
		zero = "1"
		if policy == "always" {
			note = "torchtitan gathers the parameters again for each micro-batch; planc prices one gather per step"
		}
	case policy == "never":
		zero = "2"
	}
	if !d.isSharded() && d.replicate > 1 && d.tp*d.pp > 1 {
		r.Wrong(replicateKey, Conflict, "", "%s = %d with %s = 1 is DDP, which torchtitan does not combine with tp "+
			"or pp: "+
			"set %s = %d and %s = 1", replicateKey, d.replicate, shardKey, shardKey, d.replicate, replicateKey)
	}
	field := interop.Field{Path: "plan.zero", Value: zero}
	switch {
	case note != "":
		r.Account(reshardKey, interop.Unsupported, note)
		r.Import.DefaultField("plan.zero", zero, ppKey)
	case r.Has(reshardKey) && d.isSharded():
		r.Take(reshardKey, field)
	case r.Has(shardKey):
		r.Take(shardKey, field)
	default:
		r.Import.DefaultField("plan.zero", zero, "default of "+shardKey)
	}
	r.readGroups()
}

// readGroups reads how many ranks share one copy of the state, and how many process different sequences.
func (r *reader) readGroups() {
	d := &r.dims
	if d.shard == rest {
		if !r.Has(shardKey) {
			r.Absent(shardKey, "all remaining devices: give their number (--nodes, --devices)")
		}
		r.Take(shardKey)
		return
	}
	r.Take(shardKey, interop.Field{Path: "plan.dp", Value: strconv.Itoa(d.replicate * d.shard)})
	r.Import.DefaultField("plan.dp", strconv.Itoa(d.replicate*d.shard), "default of "+shardKey)
	r.Take(replicateKey)
	if d.isSharded() && d.shard*d.cp > 1 {
		from := shardKey
		if d.replicate > 1 {
			from = replicateKey
		}
		r.Take(from, interop.Field{Path: "plan.zero_group", Value: strconv.Itoa(d.shard * d.cp)})
		r.Import.DefaultField("plan.zero_group", strconv.Itoa(d.shard*d.cp), "default of "+shardKey)
	}
}

// readExperts reads the degrees of experts. torchtitan takes ep from dp_shard · cp · tp.
func (r *reader) readExperts() {
	d := &r.dims
	if !r.experts {
		r.Account(epKey, interop.NoEffect, "the model has no experts")
		r.Account(etpKey, interop.NoEffect, "the model has no experts")
		return
	}
	if r.layers == 0 && d.ep == 1 {
		return // the model is not known
	}
	etp := d.tp // without ep, experts are split as the rest of the model
	if d.ep > 1 {
		etp = d.etp
		if etp != 1 && etp != d.tp {
			r.Wrong(etpKey, Conflict, strconv.Itoa(d.tp), "%s is %d; torchtitan supports 1 or tp, which is %d",
				etpKey, etp,
				d.tp)
		}
		if group := d.shard * d.cp * d.tp; d.shard != rest && group%(d.ep*etp) != 0 {
			r.Wrong(epKey, Conflict, "", "ep %d × etp %d must divide dp_shard × cp × tp, which is %d", d.ep, etp, group)
		}
	}
	r.TakeInt(epKey, "plan.ep", d.ep)
	r.Import.DefaultField("plan.ep", strconv.Itoa(d.ep), "default of "+epKey)
	if d.ep > 1 {
		r.TakeInt(etpKey, "plan.etp", etp)
	}
	r.Import.DefaultField("plan.etp", strconv.Itoa(etp), "default of "+etpKey)
}
