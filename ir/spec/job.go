package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Job is a job file. After Load everything is filled in but Train.Precision, which may wait for SetDevice.
type Job struct {
	Name      string     `yaml:"name" class:"c" doc:"names runs and logs" absent:"the file's name" eg:"gpt2-owt"`
	Model     ModelRef   `yaml:"model" class:"d" doc:"catalogue name, path to config.json, config.json inline, or {base: NAME, overrides}" absent:"required" eg:"gpt2-124m"`
	Data      Data       `yaml:"data" doc:"what is read"`
	Train     Train      `yaml:"train" doc:"the recipe"`
	Cluster   ClusterRef `yaml:"cluster" class:"d" doc:"{node, nodes, devices}, 4xdgx-h100, 64xh100, 4xcpu, or a cluster file" absent:"required" eg:"{node: dgx-h100, nodes: 4}"`
	Objective Objective  `yaml:"objective" class:"d" doc:"what the planner looks for"`
	Plan      Pins       `yaml:"plan" class:"d" doc:"what the user has decided: a value, or a list of allowed ones"`

	Config  *Config `yaml:"-"` // the model, with train.dropout applied
	Guessed []Guess `yaml:"-"` // what decides the plan and was not written
	Dir     string  `yaml:"-"` // folder of the job file: relative paths in Data start here

	doc *strict.Doc
}

// Guess is a deciding field that the job leaves open.
type Guess struct{ Path, Value, Why string }

// Pos is where a field was written, by its dotted path; if it was not, where the closest mapping around it
// was.
func (j *Job) Pos(path string) ir.Pos {
	if j.doc == nil {
		return ir.Pos{}
	}
	if rest, ok := strings.CutPrefix(path, "model."); ok && j.Config != nil {
		return j.Config.Pos(rest)
	}
	return j.doc.Pos(path)
}

// Has says whether a field was written, by its dotted path.
func (j *Job) Has(path string) bool { return j.doc != nil && j.doc.Has(path) }

// YAML is the job as a file, overrides included; comments are lost.
func (j *Job) YAML() []byte { return j.doc.YAML() }

// ModelRef is what the job says of its model; Job.Config is what that means.
type ModelRef struct{ node *strict.Node }

// UnmarshalNode keeps the node.
func (m *ModelRef) UnmarshalNode(_ *strict.Context, n *strict.Node, _ string) { m.node = n }

// Data says what is read.
type Data struct {
	Root      string  `yaml:"root" class:"r" doc:"prefix of the paths below; ${VAR} is the environment's" absent:"the job's folder" eg:"${DATA}"`
	Train     Sources `yaml:"train" class:"r" doc:"files, globs, {path, weight}; goroot:PATH is a file of the Go installation" absent:"required to compile" eg:"[data/train.bin]"`
	Valid     Valid   `yaml:"valid" class:"r" doc:"files, or a fraction held out of train" absent:"0" eg:"0.05"`
	Tokenizer string  `yaml:"tokenizer" class:"c" now:"bytes" doc:"bytes (of text files; .bin files hold tokens), gpt2, cl100k, o200k, or a path to tokenizer.json" eg:"bytes"`
}

// Source is a file or glob and its weight in the mixture.
type Source struct {
	Path   string  `yaml:"path" doc:"file or glob" absent:"required" eg:"data/*.bin"`
	Weight float64 `yaml:"weight" over:"0" doc:"samples of this source are taken so often an epoch" absent:"1" eg:"2"`
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

// Sources are files; one may stand without a list.
type Sources []Source

// UnmarshalNode reads a list, or one source.
func (s *Sources) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind == strict.List {
		c.Decode(n, path, (*[]Source)(s))
		return
	}
	*s = make(Sources, 1)
	c.Decode(n, path, &(*s)[0])
}

// Valid is either files or a fraction of train's end.
type Valid struct {
	Files    Sources
	Fraction float64
}

// UnmarshalNode reads a fraction, or files.
func (v *Valid) UnmarshalNode(c *strict.Context, n *strict.Node, path string) {
	if n.Kind != strict.Int && n.Kind != strict.Float {
		if slices.Contains([]string{"none", "no", "off", "false"}, strings.ToLower(n.Text)) {
			c.Fixf(n.Pos, strict.OutOfRange, "0", "%s is %s; 0 means no validation (a file of that name is ./%s)",
				path, n.Text, n.Text)
			return
		}
		if share, ok := strings.CutSuffix(n.Text, "%"); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(share), 64); err == nil && v >= 0 && v < 100 {
				c.Fixf(n.Pos, strict.OutOfRange, strconv.FormatFloat(v/100, 'g', 6, 64),
					"%s is %s; a fraction of at least 0 and less than 1, or files", path, n.Text)
				return
			}
		}
		c.Decode(n, path, &v.Files)
		return
	}
	c.Decode(n, path, &v.Fraction)
	if v.Fraction < 0 || v.Fraction >= 1 {
		c.Addf(n.Pos, strict.OutOfRange, "%s is %s; a fraction of at least 0 and less than 1, or files", path, n.Text)
	}
}

// ClusterRef names the hardware. It has the fields of costmodel.Ref.
type ClusterRef struct {
	Node    string `yaml:"node" class:"d" doc:"catalogue name, GPU's name, or cluster file" absent:"required" eg:"dgx-h100"`
	Nodes   int    `yaml:"nodes" class:"d" min:"1" max:"1e6" doc:"how many" absent:"as the cluster's file says" eg:"4"`
	Devices int    `yaml:"devices" class:"d" min:"1" max:"4096" doc:"of a node" absent:"as the cluster's file says" eg:"8"`
	Count   int    `yaml:"-"` // of the short form 4xNAME
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
		c.Addf(n.Pos, strict.WrongType, "%s is %v; it is written as 4xdgx-h100 or {node: dgx-h100, nodes: 4}",
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
			c.Addf(nodes.Pos, Conflict, "%s.nodes is %d, and %s says how many already; one of them is wanted", path,
				r.Nodes, r.Node)
		}
		r.Count, r.Node = count, name
	}
}

// ShortCluster are the two parts of a short form: 4 and dgx-h100 of 4xdgx-h100. Of what is none, and of a path, the
// number is 0.
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

// isShort says whether a cluster is written with its size, as 4xdgx-h100 is.
func isShort(node string) bool {
	count, _ := ShortCluster(node)
	return count > 0
}

// written says whether a value is the file's own, and not an override's.
func written(n *strict.Node) bool { return n.Pos.Line > 0 }

// dropSizes removes what the file says of a cluster's size, which an override with a size replaces.
func dropSizes(cluster *strict.Node) {
	if cluster == nil {
		return
	}
	cluster.Fields = slices.DeleteFunc(cluster.Fields, func(f strict.Field) bool {
		return (f.Key == "nodes" || f.Key == "devices") && written(f.Value)
	})
}

// isClusterPath is costmodel.IsFile.
func isClusterPath(s string) bool {
	l := strings.ToLower(s)
	return strings.ContainsAny(s, `/\`) || strings.HasSuffix(l, ".yaml") || strings.HasSuffix(l, ".yml")
}

// Objective is what the planner looks for.
type Objective struct {
	Kind     string  `yaml:"kind" class:"d" enum:"throughput,devices,cost,energy" doc:"throughput: the fastest step; devices: the fewest that reach rate or days; cost: the cheapest nodes, energy: the devices that draw least for the training, in days if given" eg:"throughput"`
	Headroom float64 `yaml:"headroom" class:"d" min:"0" under:"1" doc:"fraction of device memory that is left free" eg:"0.1"`
	Prefer   string  `yaml:"prefer" class:"d" enum:"robust,fastest" doc:"of the plans that predictions cannot tell apart, 2 % of a step: robust, the one with least memory pressure, then the simplest; fastest" eg:"fastest"`
	Rate     float64 `yaml:"rate" class:"d" over:"0" doc:"tokens a second to reach" absent:"none" eg:"1e6"`
	Days     float64 `yaml:"days" class:"d" over:"0" doc:"in which all steps shall be done" absent:"none" eg:"14"`
}
