package torchtitan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// batchReader reads the batch and the pipeline.
type batchReader struct{ *reader }

// defaultLocal is the default of training.local_batch_size.
const defaultLocal = 8

// readBatch reads the batch. Without a pipeline, the local batch is the micro-batch, and gradients are accumulated over
// as many as the global batch needs. With a pipeline, the local batch has all micro-batches of one pass.
func (r *batchReader) readBatch() {
	d := &r.dims
	local, ok := r.Positive(localKey)
	if !ok {
		local = defaultLocal
	}
	micro, passes := local, 1
	if d.pp > 1 {
		micro = r.degree(pipeMicroKey)
		passes = local / micro
		if local%micro != 0 {
			r.Wrong(pipeMicroKey, Conflict, "", "%s is %d; it must divide %s, which is %d", pipeMicroKey, micro,
				localKey,
				local)
		}
		r.TakeInt(pipeMicroKey, "plan.micro_batch", micro)
		r.Import.DefaultField("plan.micro_batch", strconv.Itoa(micro), "default of "+pipeMicroKey)
	} else {
		r.TakeInt(localKey, "plan.micro_batch", micro)
		r.Import.DefaultField("plan.micro_batch", strconv.Itoa(micro), "default of "+localKey)
	}
	r.readGlobal(local, passes)
	if n, ok := r.Positive(seqKey); ok {
		r.TakeInt(seqKey, "train.seq_len", n)
	} else if !r.Has(seqKey) {
		r.Import.DefaultField("train.seq_len", strconv.Itoa(r.defaultInt(seqKey)), "default of "+seqKey)
	}
}

// defaultInt returns the default of a key.
func (r *batchReader) defaultInt(key string) int {
	row, _ := Keys.Find(key)
	n, _ := strconv.Atoi(row.Default)
	return n
}

// readGlobal reads the global batch, for a local one that takes some passes through the pipeline.
func (r *batchReader) readGlobal(local, passes int) {
	d := &r.dims
	global, ok := r.Int(globalKey)
	replicas := max(d.replicate*d.shard, 1)
	all, inRange := r.GlobalBatch(localKey, local, "", 1, replicas)
	if !inRange {
		return
	}
	switch {
	case d.shard == rest && (!ok || global < 0):
		r.Account(globalKey, interop.Planned, "")
		r.Import.DefaultField("plan.micro_batches", strconv.Itoa(passes), "default of "+globalKey)
		r.takePasses(passes)
		return
	case !ok || global < 0:
		r.Take(globalKey)
		r.Import.DefaultField("train.global_batch", strconv.Itoa(all), localKey+" × replicas, the "+
			"default of "+
			globalKey)
	case global == 0:
		r.Wrong(globalKey, strict.OutOfRange, "-1", "%s is 0; it must be at least 1, or -1 for no accumulation",
			globalKey)
		return
	case d.shard != rest && global%all != 0:
		r.Wrong(globalKey, Conflict, strconv.Itoa(nearestMultiple(global, all)), "%s is %d; it must be a "+
			"multiple of "+
			"%s %d × %d replicas = %d", globalKey, global, localKey, local, replicas, all)
		return
	default:
		r.TakeInt(globalKey, "train.global_batch", global)
		if d.shard != rest {
			passes *= global / (local * replicas)
		}
	}
	if d.shard != rest {
		r.Import.DefaultField("plan.micro_batches", strconv.Itoa(passes), localKey)
		if d.pp > 1 && ok && global > all {
			r.Account(localKey, interop.Unsupported, "gradients are accumulated over several passes through the "+
				"pipeline, "+
				"which empties between them; planc prices one pass with all micro-batches")
			return
		}
	}
	r.takePasses(passes)
}

// takePasses records that the local batch says the number of micro-batches of a pipeline.
func (r *batchReader) takePasses(passes int) {
	if r.dims.pp > 1 {
		r.TakeInt(localKey, "plan.micro_batches", passes)
	}
}

// roundUp returns the next multiple.
func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// nearestMultiple returns the multiple, at least one, that is nearest.
func nearestMultiple(n, multiple int) int { return max(1, (n+multiple/2)/multiple) * multiple }

// readPipeline reads the schedule and the layers of each chunk.
func (r *batchReader) readPipeline() {
	d := &r.dims
	if d.pp == 1 {
		return
	}
	name := r.Text(scheduleKey)
	from := scheduleKey
	if !r.Has(scheduleKey) {
		name, from = "1F1B", "default of "+scheduleKey
	}
	s := scheduleNamed(name)
	if s == nil {
		var names []string
		for _, known := range schedules {
			names = append(names, known.name)
		}
		_, _ = r.OneOf(scheduleKey, names...) // reports it
		return
	}
	switch {
	case r.Text(parallelism+"pipeline_parallel_schedule_csv") != "" || s.plan == "":
		r.Account(scheduleKey, interop.Unsupported, "planc does not price this schedule, and takes the best that it "+
			"knows")
	default:
		r.Take(scheduleKey, interop.Field{Path: "plan.schedule", Value: s.plan})
		r.Import.DefaultField("plan.schedule", s.plan, from)
	}
	r.readChunks(s)
}

// readChunks reads how layers are divided among the chunks.
func (r *batchReader) readChunks(s *schedule) {
	d := &r.dims
	key := perChunkKey
	counts, fromModules := r.listedChunks()
	switch {
	case fromModules:
		key = modulesKey
		if len(counts)%d.pp != 0 {
			r.Wrong(modulesKey, Conflict, "", "%s lists %d chunks, which %d stages cannot share evenly", modulesKey,
				len(counts), d.pp)
			return
		}
	case r.layers == 0:
		return // the planner divides the layers of a model that the user gives
	default:
		sp := split{layers: r.layers, stages: d.pp, first: defaultLess, last: defaultLess, multi: s.multi}
		sp.perChunk, _ = r.Positive(perChunkKey)
		if n, ok := r.Int(firstLessKey); ok {
			sp.first = n
		}
		if n, ok := r.Int(lastLessKey); ok {
			sp.last = n
		}
		chunks, err := sp.count()
		if err == nil {
			counts, err = sp.counts(chunks)
		}
		if err != nil {
			r.Wrong(r.firstOf(perChunkKey, firstLessKey, lastLessKey, ppKey), Conflict, "", "%v", err)
			return
		}
	}
	r.takeChunks(key, counts, s)
}

// firstOf returns the first of some keys that the file has, or the last one.
func (r *batchReader) firstOf(keys ...string) string {
	for _, key := range keys {
		if r.Has(key) {
			return key
		}
	}
	return keys[len(keys)-1]
}

// takeChunks records the layers of each chunk.
func (r *batchReader) takeChunks(key string, counts []int, s *schedule) {
	r.largest = slices.Max(counts)
	texts := make([]string, len(counts))
	for i, n := range counts {
		texts[i] = strconv.Itoa(n)
	}
	list := "[" + strings.Join(texts, ", ") + "]"
	from := key
	if !r.Has(key) {
		from = "default of " + key
	}
	vpp := len(counts) / r.dims.pp
	if s.plan != "interleaved" && s.plan != "zb-v" && vpp > 1 && s.plan != "" {
		r.Wrong(key, Conflict, "Interleaved1F1B", "%s gives each stage %d chunks, but schedule %s has one", key,
			vpp, s.name)
	}
	for _, k := range []string{key, firstLessKey, lastLessKey} {
		r.Take(k, interop.Field{Path: "plan.stage_layers", Value: list})
	}
	r.Import.DefaultField("plan.stage_layers", list, from)
	r.Import.DefaultField("plan.vpp", strconv.Itoa(vpp), from)
	if key == modulesKey {
		for _, k := range []string{perChunkKey, firstLessKey, lastLessKey} {
			r.Account(k, interop.IgnoredByTool, modulesKey+" lists the layers of each chunk")
		}
	}
}

// listedChunks returns the number of layers of each chunk that module_fqns_per_model_part lists.
func (r *batchReader) listedChunks() (counts []int, ok bool) {
	n := r.Node(modulesKey)
	if n == nil {
		return nil, false
	}
	if n.Kind != strict.List || len(n.Items) == 0 {
		r.Wrong(modulesKey, strict.WrongType, "", "%s must be a list with a list of module names for each chunk",
			modulesKey)
		return nil, false
	}
	next := 0
	for _, chunk := range n.Items {
		count := 0
		for _, name := range chunk.Items {
			number, isLayer := strings.CutPrefix(name.Text, "layers.")
			if !isLayer {
				continue
			}
			if number != strconv.Itoa(next) {
				r.Wrong(modulesKey, Conflict, "layers."+strconv.Itoa(next), "%s names %s where layers.%d must follow",
					modulesKey, name.Text, next)
				return nil, false
			}
			next++
			count++
		}
		counts = append(counts, count)
	}
	if r.layers > 0 && next != r.layers {
		r.Wrong(modulesKey, Conflict, "", "%s names %d layers; the model has %d", modulesKey, next, r.layers)
		return nil, false
	}
	return counts, true
}
