package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Override is a change of one field by the command line.
type Override = strict.Override

// SetFlag returns the override of the argument of `--set KEY=VALUE`.
func SetFlag(arg string) Override { return strict.SetFlag(arg) }

// Quick lists the command-line flags that are short for job fields, with the field that each sets.
var Quick = []struct{ Flag, Key, Doc string }{
	{"model", "model", "catalogue name or path to a config.json"},
	{"cluster", "cluster.node", "catalogue name or cluster file"},
	{"nodes", "cluster.nodes", "number of nodes; with --days or a rate, the largest number allowed (2,048)"},
	{"devices", "cluster.devices", "devices per node"},
	{"global-batch", "train.global_batch", "sequences per optimizer step"},
	{"seq-len", "train.seq_len", "tokens per sequence"},
	{"precision", "train.precision", "f64, f32, bf16, fp16, fp8"},
	{"engine", "train.engine", "training engine to plan for"},
	{"objective", "objective.kind", "throughput; devices: the fewest that reach a rate or days; cost; energy"},
	{"tokens", "train.tokens", "tokens to train on"},
	{"days", "objective.days", "days in which the whole training must finish, with objective devices, cost or " +
		"energy"},
}

// QuickFlag returns the override of a quick flag, whose name is given without dashes.
func QuickFlag(flag, value string) (Override, bool) {
	for _, q := range Quick {
		if q.Flag == flag {
			return Override{Key: q.Key, Value: value, Shown: "--" + flag + " " + value}, true
		}
	}
	return Override{}, false
}

// Load reads a job file, applies the overrides in order, and resolves the model. If path is "", the job consists of the
// overrides; if it is "-", the job is what read returns for it. All files are read through read. Input errors are
// returned together as ir.Diags. The job is then returned as far as it could be read, so that its cluster can be
// checked too; it is nil if the file could not be read at all.
func Load(path string, read func(string) ([]byte, error), overrides ...Override) (*Job, error) {
	doc, diags := strict.New(), ir.Diags{}
	j := defaults()
	if path != "" {
		data, err := read(path)
		if err != nil {
			diags.Addf(ir.Pos{File: path}, NoFile, "the job file cannot be read: %s", ir.FileReason(err))
			return nil, diags
		}
		doc, diags = strict.Parse(path, data)
		if doc.Root.Kind != strict.Map {
			if len(diags) == 0 {
				diags.Addf(doc.Root.Pos, strict.WrongType, "the job file is %v; it must be a mapping", doc.Root.Kind)
			}
			return nil, diags.Err()
		}
		j.Dir = filepath.Dir(path)
	}
	if syntax(diags) {
		return nil, diags.Err()
	}
	for _, o := range overrides {
		if o.Key == "cluster.node" && isShort(o.Value) {
			dropSizes(doc.Root.Get("cluster"))
		}
		diags = append(diags, doc.Set(o, expand)...)
	}
	j.doc = doc
	diags = append(diags, doc.Decode(j)...)
	j.complete(path, read, &diags)
	return j, withoutEchoes(diags).Err()
}

// syntax reports whether the file could not be parsed, so that absent fields mean nothing.
func syntax(diags ir.Diags) bool {
	for _, d := range diags {
		switch d.Code {
		case strict.Syntax, strict.Empty, strict.ManyDocuments, strict.TooLarge:
			return true
		}
	}
	return false
}

// withoutEchoes removes errors that follow from another error: a field reported as missing or invalid whose key is
// misspelt or whose value has the wrong type.
func withoutEchoes(diags ir.Diags) ir.Diags {
	misspelt, mistyped := map[string]bool{}, map[ir.Pos]bool{}
	for _, d := range diags {
		mistyped[d.Pos] = mistyped[d.Pos] || d.Code == strict.WrongType
		if d.Code == strict.UnknownKey && d.Fix != "" {
			misspelt[d.Fix[strings.LastIndexByte(d.Fix, '.')+1:]] = true
		}
	}
	return slices.DeleteFunc(diags, func(d ir.Diag) bool {
		if mistyped[d.Pos] && (d.Code == Missing || d.Code == strict.BadName) {
			return true
		}
		field, _, _ := strings.Cut(d.Msg, " ")
		keys := strings.Split(field, ".")
		return d.Code == Missing && slices.ContainsFunc(keys, func(k string) bool { return misspelt[k] })
	})
}

// expand returns the mapping that a short form abbreviates, so that an override can set one of its fields.
func expand(path string, n *strict.Node) *strict.Node {
	one := func(key string, v *strict.Node) *strict.Node {
		return &strict.Node{Kind: strict.Map, Pos: n.Pos, Dir: n.Dir,
			Fields: []strict.Field{{Key: key, Pos: n.Pos, Value: v}}}
	}
	if n.Kind != strict.String {
		return nil
	}
	value := *n
	switch path {
	case "model":
		return one("base", &value)
	case "train.precision":
		return one("compute", &value)
	case "cluster":
		return one("node", &value)
	}
	return nil
}

// complete fills in the fields that depend on others, and checks what tags cannot express.
func (j *Job) complete(path string, read func(string) ([]byte, error), diags *ir.Diags) {
	loader := modelLoader{read: read, diags: diags}
	if !j.Has("name") {
		j.nameIt(path)
	}
	if j.Model.node == nil {
		diags.Addf(j.Pos(""), Missing, "model is missing; %s",
			"use a catalogue name such as gpt2-124m, the path of a config.json, or its content")
	} else {
		j.Config = loader.load(j.Model.node, j.Name)
	}
	switch {
	case j.Has("name"):
		j.checkName(diags)
	case j.Name == "" && j.Config != nil:
		j.Name = j.Config.Name
	}
	if j.Cluster.Node == "" && !j.Has("cluster") {
		diags.Addf(j.Pos(""), Missing, "cluster is missing; write {node: dgx-h100, nodes: 4} or 4xcpu")
	}
	j.checkRecipe(diags)
	c := recipeCheck{j, diags}
	c.batch()
	c.stepSize()
	c.lengths()
	c.retention()
	c.earlyStop()
	c.rollback()
	c.optimizer()
	c.objective()
	j.Plan.Own(diags, j.Pos)
	if d := j.Train.Dropout; d != nil && j.Config != nil {
		j.Config.DropEmbd, j.Config.DropResid, j.Config.DropAttn = *d, *d, *d
	}
	j.paddingRow(diags)
	j.routing(diags)
	j.assume()
}

// nameIt names a job without a name after its file.
func (j *Job) nameIt(path string) {
	if path == "-" { // a job from standard input: the folder of its runs needs a name
		j.Name = "job"
	} else if path != "" {
		j.Name = folderName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	}
}

// checkName checks that the job's name can be the name of its runs' folder.
func (j *Job) checkName(diags *ir.Diags) {
	if slices.ContainsFunc(*diags, func(d ir.Diag) bool { return d.Code == strict.BadName && d.Pos == j.Pos("name") }) {
		return // it has invisible characters, which are reported already
	}
	if fix := folderName(j.Name); fix != j.Name || fix == "" {
		*diags = append(*diags, ir.Diag{Pos: j.Pos("name"), Code: strict.BadName, Fix: fix,
			Msg: fmt.Sprintf("name is %q, which cannot be the name of a folder", j.Name)})
	}
}

// folderName returns the name with what a folder's name cannot contain removed, "" if nothing is left.
func folderName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '/' || r == '\\':
			return '-'
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, name)
	clean = strings.TrimSpace(clean)
	if clean == "." || clean == ".." {
		return ""
	}
	return clean
}

// recipeCheck completes and checks the keys of a job's recipe against each other.
type recipeCheck struct {
	*Job
	diags *ir.Diags
}

// batch computes the batch of a step from its sequences or its tokens.
func (j *recipeCheck) batch() {
	t := &j.Train
	if t.SeqLen == 0 && !j.Has("train.seq_len") {
		j.diags.Addf(j.Pos("train"), Missing, "train.seq_len is missing")
	}
	both, tokens := j.Has("train.global_batch"), j.Has("train.global_batch_tokens")
	switch {
	case both && tokens:
		j.diags.Addf(j.Pos("train.global_batch_tokens"), Conflict,
			"train.global_batch and train.global_batch_tokens are both given: remove one")
	case !both && !tokens:
		j.diags.Addf(j.Pos("train"), Missing, "train.global_batch is missing (or global_batch_tokens)")
	case tokens && t.SeqLen > 0 && t.GlobalBatchTokens > 0:
		t.GlobalBatch = t.GlobalBatchTokens / t.SeqLen
		if t.GlobalBatchTokens%t.SeqLen != 0 {
			*j.diags = append(*j.diags, ir.Diag{Pos: j.Pos("train.global_batch_tokens"), Code: BadBatch,
				Fix: fmt.Sprint(max(t.GlobalBatch, 1) * t.SeqLen),
				Msg: fmt.Sprintf("train.global_batch_tokens is %d, which is not a multiple of train.seq_len %d",
					t.GlobalBatchTokens, t.SeqLen)})
		}
	}
}

// Limits on the tokens of a step, and on the elements of a value that covers all of them. Sizes in bytes then stay far
// below 2^63.
const (
	maxTokens   = 1e12
	maxElements = 1e17
)

// stepSize checks the size of a whole step, which the bounds of single keys do not limit.
func (j *recipeCheck) stepSize() {
	t := &j.Train
	tokens := float64(t.GlobalBatch) * float64(t.SeqLen)
	switch {
	case tokens > maxTokens:
		j.diags.Addf(j.Pos("train.global_batch"), BadBatch,
			"train.global_batch %d times train.seq_len %d is %.3g tokens per step; planc supports at most "+
				"%.0e: use at most train.global_batch %d",
			t.GlobalBatch, t.SeqLen, tokens, maxTokens, int64(maxTokens)/int64(t.SeqLen))
	case j.Config != nil && tokens*j.Config.widest() > maxElements:
		j.diags.Addf(j.Pos("train.global_batch"), BadBatch,
			"a step of %.3g tokens has values of %.3g elements in this model; planc supports at most %.0e: use "+
				"at most train.global_batch %d",
			tokens, tokens*j.Config.widest(), maxElements, int(maxElements/j.Config.widest()/float64(t.SeqLen)))
	}
}

// lengths checks that at most one of steps, epochs and tokens is given, and checks the learning-rate schedule.
func (j *recipeCheck) lengths() {
	first := ""
	for _, k := range []string{"train.steps", "train.epochs", "train.tokens"} {
		switch {
		case !j.Has(k):
		case first == "":
			first = k
		default:
			j.diags.Addf(j.Pos(k), Conflict, "%s and %s are both given: use one of steps, epochs and tokens", first, k)
		}
	}
	s := &j.Train.Schedule
	if s.Kind == "wsd" && !j.Has("train.schedule.decay") {
		j.diags.Addf(j.Pos("train.schedule"), Missing,
			"train.schedule.decay is missing: schedule wsd needs the number of steps of its final decay")
	}
	if s.Kind != "wsd" && j.Has("train.schedule.decay") {
		j.diags.Addf(j.Pos("train.schedule.decay"), Conflict,
			"train.schedule.decay applies to schedule wsd only; the schedule is %s",
			s.Kind)
	}
	if lr := j.Train.Optimizer.LR; s.MinLR > lr && lr > 0 {
		j.diags.Addf(j.Pos("train.schedule.min_lr"), Conflict,
			"train.schedule.min_lr is %v, above train.optimizer.lr %v", s.MinLR, lr)
	}
}

// retention checks that each key of train.checkpoint has an effect.
func (j *recipeCheck) retention() {
	c := &j.Train.Checkpoint
	if c.KeepEvery > 0 && c.KeepLast == 0 {
		j.diags.Addf(j.Pos("train.checkpoint.keep_every"), Conflict,
			"train.checkpoint.keep_every needs keep_last: without keep_last all checkpoints are kept")
	}
	if c.TopK > 0 && c.Best == "" {
		j.diags.Addf(j.Pos("train.checkpoint.top_k"), Conflict,
			"train.checkpoint.top_k needs best: add best: valid_loss")
	}
}

// rollback checks that there are checkpoints to return to.
func (j *recipeCheck) rollback() {
	if s := j.Train.OnSpike; (s == "rollback" || s == "skip") && j.Train.Checkpoint.Every == 0 {
		j.diags.Addf(j.Pos("train.on_spike"), Conflict,
			"train.on_spike %s needs train.checkpoint.every: without it there is no checkpoint to return to", s)
	}
}

// earlyStop checks that each key of train.early_stop has an effect.
func (j *recipeCheck) earlyStop() {
	e := &j.Train.EarlyStop
	switch isOn := e.Metric != "" || e.Patience > 0; {
	case e.MinDelta > 0 && !isOn:
		j.diags.Addf(j.Pos("train.early_stop.min_delta"), Conflict,
			"train.early_stop.min_delta needs patience: add patience: 3")
	case isOn && j.Train.Eval.Every == 0:
		j.diags.Addf(j.Pos("train.early_stop"), Conflict,
			"train.early_stop needs train.eval.every: without it, the validation loss is measured only at the end")
	}
}

// optimizer checks that the optimizer has no keys of other kinds.
func (j *recipeCheck) optimizer() {
	o := &j.Train.Optimizer
	if o.Kind == "adamw" && !j.Has("train.optimizer.weight_decay") {
		o.WeightDecay = 0.1
	}
	if o.Kind != "sgd" && j.Has("train.optimizer.momentum") {
		j.diags.Addf(j.Pos("train.optimizer.momentum"), Conflict,
			"train.optimizer.momentum applies to optimizer sgd only; the optimizer is %s", o.Kind)
	}
	for _, k := range []string{"betas", "eps"} {
		if o.Kind == "sgd" && j.Has("train.optimizer."+k) {
			j.diags.Addf(j.Pos("train.optimizer."+k), Conflict,
				"train.optimizer.%s applies to Adam only; the optimizer is sgd",
				k)
		}
	}
}
