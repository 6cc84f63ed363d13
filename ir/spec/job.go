package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Job is a job file. Load fills in every field, except Train.Precision if it depends on the device (SetDevice).
type Job struct {
	Name      string     `yaml:"name" class:"c" doc:"name of runs and logs" absent:"the file's name" eg:"gpt2-owt"`
	Model     ModelRef   `yaml:"model" class:"d" doc:"catalogue name, path to config.json, config.json inline, or {base: NAME, overrides}" absent:"required" eg:"gpt2-124m"`
	Data      Data       `yaml:"data" doc:"data to train and validate on"`
	Train     Train      `yaml:"train" doc:"the training recipe"`
	Cluster   ClusterRef `yaml:"cluster" class:"d" doc:"{node, nodes, devices}, 4xdgx-h100, 64xh100, 4xcpu, or a cluster file" absent:"required" eg:"{node: dgx-h100, nodes: 4}"`
	Objective Objective  `yaml:"objective" class:"d" doc:"what the planner optimizes"`
	Plan      Pins       `yaml:"plan" class:"d" doc:"parts of the plan that you decide: a value, or a list of allowed values"`

	Config  *Config      `yaml:"-"` // the model, with train.dropout applied
	Assumed []Assumption `yaml:"-"` // fields that decide the plan and that the job leaves open
	Dir     string       `yaml:"-"` // folder of the job file, at which relative paths in Data start

	doc *strict.Doc
}

// Assumption is a deciding field that the job leaves open, with the value assumed for it and the reason.
type Assumption struct{ Path, Value, Why string }

// Pos returns the position of a field, given by its dotted path, or of the closest enclosing mapping if the field is
// absent.
func (j *Job) Pos(path string) ir.Pos {
	if j.doc == nil {
		return ir.Pos{}
	}
	if rest, ok := strings.CutPrefix(path, "model."); ok && j.Config != nil {
		return j.Config.Pos(rest)
	}
	return j.doc.Pos(path)
}

// Has reports whether the job contains a field, given by its dotted path.
func (j *Job) Has(path string) bool { return j.doc != nil && j.doc.Has(path) }

// YAML returns the job as a file, including overrides but without comments.
func (j *Job) YAML() []byte { return j.doc.YAML() }

// ModelRef is the model as the job gives it. Job.Config is the model that it denotes.
type ModelRef struct{ node *strict.Node }

// UnmarshalNode keeps the node.
func (m *ModelRef) UnmarshalNode(_ *strict.Context, n *strict.Node, _ string) { m.node = n }

// Data holds the files to train and validate on.
type Data struct {
	Root         string  `yaml:"root" class:"r" doc:"prefix of the paths below; ${VAR} is an environment variable" absent:"the job's folder" eg:"${DATA}"`
	Train        Sources `yaml:"train" class:"r" doc:"files, globs, or {path, weight}; goroot:PATH is a file of the Go installation" absent:"required to compile" eg:"[data/train.bin]"`
	Valid        Valid   `yaml:"valid" class:"r" doc:"files, or a fraction of the training data to hold out" absent:"0" eg:"0.05"`
	Weights      string  `yaml:"weights" class:"r" enum:"passes,shares" doc:"meaning of the weights of train: how often an epoch reads each sample of the source (passes), or the sources' shares in the samples, as in Megatron's blends (shares)" absent:"passes" eg:"shares"`
	Sampling     string  `yaml:"sampling" class:"r" enum:"shuffle,random" doc:"order of training samples: consecutive windows of seq_len tokens, each once per epoch (shuffle), or windows that begin at random tokens, drawn with replacement, as in nanoGPT (random)" absent:"shuffle" eg:"random"`
	Documents    string  `yaml:"documents" class:"r" enum:"packed,separate" doc:"packed: windows ignore where documents end, and attention crosses their borders; separate: each sample is of one document, and its rest is padding that does not count (needs a Megatron data set)" absent:"packed" eg:"separate"`
	DocumentMask bool    `yaml:"document_mask" class:"c" doc:"whether attention and loss do not cross the borders of the documents in a window, and learned positions begin at each (Megatron's --reset-attention-mask, --reset-position-ids and --eod-mask-loss); needs a Megatron data set, or a source that is an rt.DocumentSource" absent:"false" eg:"true"`
	Tokenizer    string  `yaml:"tokenizer" class:"c" doc:"tokenizer of prompts and sampled text, and of text files if it is bytes: bytes, gpt2, cl100k, o200k, or the path of a tokenizer.json" eg:"bytes"`
}

// Source is a file or glob and its weight in the mixture.
type Source struct {
	Path   string  `yaml:"path" doc:"file or glob" absent:"required" eg:"data/*.bin"`
	Weight float64 `yaml:"weight" over:"0" doc:"times that each sample of this source is used per epoch; with data.weights: shares, its part of the samples" absent:"1" eg:"2"`
}

// UnmarshalNode reads a path, or {path, weight}.
func (s *Source) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	s.Weight = 1
	if n.Kind == strict.Map {
		c.Struct(n, path, s)
	} else {
		c.Decode(n, path, &s.Path)
	}
	if n.Kind == strict.Map && n.Get("path") == nil || n.Kind == strict.String && n.Text == "" {
		c.Addf(n.Pos, Missing, "%s has no path", path)
	}
}

// Sources are files. A single file may be given without a list.
type Sources []Source

// UnmarshalNode reads a list or a single source.
func (s *Sources) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind == strict.List {
		c.Decode(n, path, (*[]Source)(s))
		return
	}
	*s = make(Sources, 1)
	c.Decode(n, path, &(*s)[0])
}

// Valid is either files or a fraction at the end of the training data.
type Valid struct {
	Files    Sources
	Fraction float64
}

// UnmarshalNode reads a fraction, or files.
func (v *Valid) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind != strict.Int && n.Kind != strict.Float {
		if slices.Contains([]string{"none", "no", "off", "false"}, strings.ToLower(n.Text)) {
			c.Fixf(n.Pos, strict.OutOfRange, "0", "%s is %s; use 0 for no validation, or ./%s for a file of "+
				"that name",
				path, n.Text, n.Text)
			return
		}
		if share, ok := strings.CutSuffix(n.Text, "%"); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(share), 64); err == nil && v >= 0 && v < 100 {
				c.Fixf(n.Pos, strict.OutOfRange, strconv.FormatFloat(v/100, 'g', 6, 64),
					"%s is %s; it must be a fraction of at least 0 and less than 1, or files", path, n.Text)
				return
			}
		}
		c.Decode(n, path, &v.Files)
		return
	}
	c.Decode(n, path, &v.Fraction)
	if v.Fraction < 0 || v.Fraction >= 1 {
		c.Addf(n.Pos, strict.OutOfRange, "%s is %s; it must be a fraction of at least 0 and less than 1, or "+
			"files", path, n.Text)
	}
}

// ClusterRef names the hardware. It has the fields of costmodel.Ref.
type ClusterRef struct {
	Node    string `yaml:"node" class:"d" doc:"catalogue name, name of a GPU, or cluster file" absent:"required" eg:"dgx-h100"`
	Nodes   int    `yaml:"nodes" class:"d" min:"1" max:"1e6" doc:"number of nodes" absent:"the cluster file's" eg:"4"`
	Devices int    `yaml:"devices" class:"d" min:"1" max:"4096" doc:"devices per node" absent:"the cluster file's" eg:"8"`
	Count   int    `yaml:"-"` // number in the short form 4xNAME
}

var shortCluster = regexp.MustCompile(`^([1-9][0-9]{0,11})x([A-Za-z].*)$`)

// UnmarshalNode reads a mapping, or a short form.
func (r *ClusterRef) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind == strict.Map {
		c.Struct(n, path, r)
		if r.Node == "" && n.Get("node") == nil {
			c.Addf(c.Pos(path), Missing, "%s has no node", path)
		}
	} else if n.Kind == strict.String {
		c.Decode(n, path, &r.Node)
	} else {
		c.Addf(n.Pos, strict.WrongType, "%s is %v; write 4xdgx-h100 or {node: dgx-h100, nodes: 4}",
			path, n.Kind)
	}
	at := n
	if node := n.Get("node"); node != nil {
		at = node
	}
	switch count, name := ShortCluster(r.Node); {
	case isClusterPath(r.Node):
		r.Node = inDir(at.Dir, r.Node)
	case count > 0:
		if nodes := n.Get("nodes"); nodes != nil && written(nodes) == written(at) {
			c.Addf(nodes.Pos, Conflict, "%s.nodes is %d, but %s contains a number already: remove one of them", path,
				r.Nodes, r.Node)
		}
		r.Count, r.Node = count, name
	}
}

// ShortCluster splits a short form: 4xdgx-h100 into 4 and dgx-h100. For a path and for other text, the count is 0.
func ShortCluster(text string) (count int, name string) {
	m := shortCluster.FindStringSubmatch(text)
	if m == nil || isClusterPath(text) {
		return 0, text
	}
	for _, d := range m[1] {
		count = 10*count + int(d-'0')
	}
	return count, m[2]
}

// isShort reports whether a cluster is given in the short form with its size, such as 4xdgx-h100.
func isShort(node string) bool {
	count, _ := ShortCluster(node)
	return count > 0
}

// written reports whether a value comes from the file instead of from an override.
func written(n *strict.Node) bool { return n.Pos.Line > 0 }

// dropSizes removes the cluster's size in the file, because an override gives a size.
func dropSizes(cluster *strict.Node) {
	if cluster == nil {
		return
	}
	cluster.Fields = slices.DeleteFunc(cluster.Fields, func(f strict.Field) bool {
		return (f.Key == "nodes" || f.Key == "devices") && written(f.Value)
	})
}

// isClusterPath is a copy of costmodel.IsFile.
func isClusterPath(s string) bool {
	l := strings.ToLower(s)
	return strings.ContainsAny(s, `/\`) || strings.HasSuffix(l, ".yaml") || strings.HasSuffix(l, ".yml")
}

// Objective is what the planner optimizes.
type Objective struct {
	Kind     string  `yaml:"kind" class:"d" enum:"throughput,devices,cost,energy" doc:"throughput: the fastest step; devices: the fewest devices that reach rate or days; cost: the cheapest nodes for the training, energy: the devices that use the least energy for it, within days if given" eg:"throughput"`
	Headroom float64 `yaml:"headroom" class:"d" min:"0" under:"1" doc:"fraction of device memory that is left free" eg:"0.1"`
	Prefer   string  `yaml:"prefer" class:"d" enum:"robust,fastest" doc:"choice among plans whose predicted step times differ by at most 2 %, which predictions cannot tell apart: robust: the one with the least memory pressure, then the simplest; fastest: the fastest" eg:"fastest"`
	Rate     float64 `yaml:"rate" class:"d" over:"0" doc:"required tokens per second" absent:"none" eg:"1e6"`
	Days     float64 `yaml:"days" class:"d" over:"0" doc:"days in which the whole training must finish" absent:"none" eg:"14"`
}
