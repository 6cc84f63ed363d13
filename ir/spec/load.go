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

// Override is one change that a command line asks for.
type Override = strict.Override

// SetFlag is the override of one `--set KEY=VALUE`.
func SetFlag(arg string) Override { return strict.SetFlag(arg) }

// Quick are the short names of job fields on a command line, with the field each sets.
var Quick = []struct{ Flag, Key, Doc string }{
	{"model", "model", "catalogue name or path to a config.json"},
	{"cluster", "cluster.node", "catalogue name or cluster file"},
	{"nodes", "cluster.nodes", "how many; with --days or a rate, how many there may be (2,048)"},
	{"devices", "cluster.devices", "of a node"},
	{"global-batch", "train.global_batch", "sequences of an optimizer step"},
	{"seq-len", "train.seq_len", "tokens of a sequence"},
	{"precision", "train.precision", "f64, f32, bf16, fp16, fp8"},
	{"engine", "train.engine", "whose runtime is priced"},
	{"objective", "objective.kind", "throughput; devices: the fewest that reach a rate or days; cost; energy"},
	{"tokens", "train.tokens", "to train on"},
	{"days", "objective.days", "in which all steps shall be done, with objective devices, cost or energy"},
}

// QuickFlag is the override of a quick flag, by its name without dashes.
func QuickFlag(flag, value string) (Override, bool) {
	for _, q := range Quick {
		if q.Flag == flag {
			return Override{Key: q.Key, Value: value, Shown: "--" + flag + " " + value}, true
		}
	}
	return Override{}, false
}

// Load reads a job file, applies overrides in their order, and resolves the model. path "" is a job of
// overrides alone; "-" is as read has it. read is the only way to files. A mistake of the user's is an
// ir.Diags, which holds all of them; the job comes with it as far as it could be read, so that its cluster can be
// looked up too, and is nil if it could not be read at all.
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
				diags.Addf(doc.Root.Pos, strict.WrongType, "the job file is %v; a mapping is wanted", doc.Root.Kind)
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

// syntax says whether the file could not be read as a whole, so that what it lacks means nothing.
func syntax(diags ir.Diags) bool {
	for _, d := range diags {
		switch d.Code {
		case strict.Syntax, strict.Empty, strict.ManyDocuments, strict.TooLarge:
			return true
		}
	}
	return false
}

// withoutEchoes drops what only follows from another mistake: a field is missing, or its value of no use, where it is
// misspelt or not of its type.
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

// expand is the mapping that a short form stands for, so that an override can set a part of it.
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

// complete fills in what depends on other fields and checks what the tags cannot say.
func (j *Job) complete(path string, read func(string) ([]byte, error), diags *ir.Diags) {
	loader := modelLoader{read: read, diags: diags}
	if !j.Has("name") {
		j.nameIt(path)
	}
	if j.Model.node == nil {
		diags.Addf(j.Pos(""), Missing, "model is missing; %s",
			"it is a catalogue name (as gpt2-124m), a path to config.json, or its content")
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
		diags.Addf(j.Pos(""), Missing, "cluster is missing; it is written as {node: dgx-h100, nodes: 4} or 4xcpu")
	}
	j.suits(diags)
	j.batch(diags)
	j.stepSize(diags)
	j.lengths(diags)
	j.optimizer(diags)
	j.objective(diags)
	j.Plan.Own(diags, j.Pos)
	if d := j.Train.Dropout; d != nil && j.Config != nil {
		j.Config.DropEmbd, j.Config.DropResid, j.Config.DropAttn = *d, *d, *d
	}
	j.paddingRow(diags)
	j.routing(diags)
	j.guess()
}

// nameIt takes the file's name where the job has none.
func (j *Job) nameIt(path string) {
	if path == "-" { // a run's folder has a name of its own all the same
		j.Name = "job"
	} else if path != "" {
		j.Name = folderName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	}
}

// checkName wants a name that can be a folder's: a run's folder is called so.
func (j *Job) checkName(diags *ir.Diags) {
	if slices.ContainsFunc(*diags, func(d ir.Diag) bool { return d.Code == strict.BadName && d.Pos == j.Pos("name") }) {
		return // it has characters that cannot be seen
	}
	if fix := folderName(j.Name); fix != j.Name || fix == "" {
		*diags = append(*diags, ir.Diag{Pos: j.Pos("name"), Code: strict.BadName, Fix: fix,
			Msg: fmt.Sprintf("name is %q, which no folder of runs can be called", j.Name)})
	}
}

// folderName is the name as a folder can be called, "" if nothing is left of it.
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

func (j *Job) batch(diags *ir.Diags) {
	t := &j.Train
	if t.SeqLen == 0 && !j.Has("train.seq_len") {
		diags.Addf(j.Pos("train"), Missing, "train.seq_len is missing")
	}
	both, tokens := j.Has("train.global_batch"), j.Has("train.global_batch_tokens")
	switch {
	case both && tokens:
		diags.Addf(j.Pos("train.global_batch_tokens"), Conflict,
			"train.global_batch and train.global_batch_tokens are both given; one is wanted")
	case !both && !tokens:
		diags.Addf(j.Pos("train"), Missing, "train.global_batch is missing (or global_batch_tokens)")
	case tokens && t.SeqLen > 0 && t.GlobalBatchTokens > 0:
		t.GlobalBatch = t.GlobalBatchTokens / t.SeqLen
		if t.GlobalBatchTokens%t.SeqLen != 0 {
			*diags = append(*diags, ir.Diag{Pos: j.Pos("train.global_batch_tokens"), Code: BadBatch,
				Fix: fmt.Sprint(max(t.GlobalBatch, 1) * t.SeqLen),
				Msg: fmt.Sprintf("train.global_batch_tokens is %d, which is no whole number of sequences of %d tokens",
					t.GlobalBatchTokens, t.SeqLen)})
		}
	}
}

// The most tokens of a step, and elements of a value of all of them: bytes of it are then far below 2^63.
const (
	mostTokens   = 1e12
	mostElements = 1e17
)

// stepSize checks what the bounds of single keys leave possible: how large a step is in all.
func (j *Job) stepSize(diags *ir.Diags) {
	t := &j.Train
	tokens := float64(t.GlobalBatch) * float64(t.SeqLen)
	switch {
	case tokens > mostTokens:
		diags.Addf(j.Pos("train.global_batch"), BadBatch,
			"train.global_batch %d of train.seq_len %d is %.3g tokens a step; at most %.0e are planned "+
				"(train.global_batch %d does)",
			t.GlobalBatch, t.SeqLen, tokens, mostTokens, int64(mostTokens)/int64(t.SeqLen))
	case j.Config != nil && tokens*j.Config.widest() > mostElements:
		diags.Addf(j.Pos("train.global_batch"), BadBatch,
			"a step of %.3g tokens has values of %.3g elements in this model; at most %.0e are planned "+
				"(train.global_batch %d does)",
			tokens, tokens*j.Config.widest(), mostElements, int(mostElements/j.Config.widest()/float64(t.SeqLen)))
	}
}

// lengths wants at most one of steps, epochs and tokens, and wsd's decay.
func (j *Job) lengths(diags *ir.Diags) {
	first := ""
	for _, k := range []string{"train.steps", "train.epochs", "train.tokens"} {
		switch {
		case !j.Has(k):
		case first == "":
			first = k
		default:
			diags.Addf(j.Pos(k), Conflict, "%s and %s are both given; one of steps, epochs, tokens is wanted", first, k)
		}
	}
	s := &j.Train.Schedule
	if s.Kind == "wsd" && !j.Has("train.schedule.decay") {
		diags.Addf(j.Pos("train.schedule"), Missing,
			"train.schedule.decay is missing: wsd wants the steps of its final decay")
	}
	if s.Kind != "wsd" && j.Has("train.schedule.decay") {
		diags.Addf(j.Pos("train.schedule.decay"), Conflict, "train.schedule.decay is wsd's, and the schedule is %s",
			s.Kind)
	}
	if lr := j.Train.Optimizer.LR; s.MinLR > lr && lr > 0 {
		diags.Addf(j.Pos("train.schedule.min_lr"), Conflict,
			"train.schedule.min_lr is %v, above train.optimizer.lr %v", s.MinLR, lr)
	}
}

func (j *Job) optimizer(diags *ir.Diags) {
	o := &j.Train.Optimizer
	if o.Kind == "adamw" && !j.Has("train.optimizer.weight_decay") {
		o.WeightDecay = 0.1
	}
	if o.Kind != "sgd" && j.Has("train.optimizer.momentum") {
		diags.Addf(j.Pos("train.optimizer.momentum"), Conflict,
			"train.optimizer.momentum is sgd's, and the optimizer is %s", o.Kind)
	}
	for _, k := range []string{"betas", "eps"} {
		if o.Kind == "sgd" && j.Has("train.optimizer."+k) {
			diags.Addf(j.Pos("train.optimizer."+k), Conflict, "train.optimizer.%s is Adam's, and the optimizer is sgd",
				k)
		}
	}
}
