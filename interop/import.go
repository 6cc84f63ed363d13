package interop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Import is what a file says.
type Import struct {
	// Format is the format's name.
	Format string
	// Files are the names of the files that were read, the main one first.
	Files []string
	// Model is the key that names the model, if the catalogue does not have it and no file gives its shape.
	Model Key
	// NoModel says why the files give no model, and what to add; "" if they give one or nothing of one.
	NoModel string
	// Log is what the main file says of a run's options if it is a log, which is not the run's input; else nil.
	Log *Log
	// Engine is the value of train.engine under which the file's plan is priced.
	Engine string
	// ReplicasZero is the stage of ZeRO that the files say for several replicas, if their own plan has one, which has
	// nothing to shard; else 0.
	ReplicasZero int
	// InCode are keys of the plan that the training code says, and no key of these files: pp of a PipelineModule.
	InCode []string
	// Devices is the number of devices that the file itself says (its launcher's arguments); 0 if it does not.
	Devices int
	// DevicesPerNode is the devices of a node that the file says; 0 if it does not.
	DevicesPerNode int
	// Nodes is the number of nodes that the files say if they do not say the devices of a node.
	Nodes NodeCount
	// Keys accounts for every key of the files, in their order, and for planned keys that are not set.
	Keys []Key
	// Fields are those of the job, in any order; each path at most once.
	Fields []Field
	// Env are the environment variables that the file sets, by name.
	Env map[string]string
	// Notes are what the user should know about the files, and that is neither an error nor about one key: numbers of
	// devices that contradict each other, definitions that nothing reads.
	Notes []Note
	// Doc is the main file, or Parts if several files say the plan, for edits in place. It is nil if the format cannot
	// be edited.
	Doc Document
	// Values returns the keys that say a plan in these files, if they are others than the format's. Nil: they are not.
	Values func(t *Target) []Value
	// Precision returns the fields of train.precision that the files say for a plan with the files' stage of ZeRO, if
	// they depend on the plan. Nil: they do not.
	Precision func(p *ir.Plan) []Field
	// Refusals returns why these files cannot express a plan that other files of the format can. It must be cheap. Nil:
	// they express all that the format can.
	Refusals func(t *Target) ir.Diags
	// RefusedOn returns what in these files the trainer refuses on a cluster's devices. Nil: nothing depends on them.
	RefusedOn func(c *costmodel.Cluster) ir.Diags
}

// Log is what a log says of the options of a run.
type Log struct {
	// Get returns an option's value. isSet is false for its default.
	Get func(key string) (text string, isSet bool)
	// Unsure are options of which the log does not show whether the script has them: the trainer computes the same
	// values from others.
	Unsure []string
	// Leaving returns the options that the trainer no longer accepts after edits of a plan.
	Leaving func(edits []Value) []string
}

// NodeCount is a number of nodes whose devices the files do not say. The zero value is none.
type NodeCount struct {
	N    int
	Name string // of the key or the option that says N
	Pos  ir.Pos
	// Why says that the devices of a node are missing: "num_processes is missing".
	Why string
}

// TakeNodes sets the number of devices that follows from Nodes, for files that were read with the options of
// [Options.On], and notes it.
func (im *Import) TakeNodes(o Options) {
	c := im.Nodes
	if c.N == 0 {
		return
	}
	im.Devices, im.DevicesPerNode = o.Devices, o.DevicesPerNode
	im.AddNote(c.Pos, "%s is %d, and %s: planc takes all %d devices of each node; if the run uses fewer, give "+
		"--nodes %[2]d --devices N", c.Name, c.N, c.Why, o.DevicesPerNode)
}

// Note is a remark about the files.
type Note struct {
	Pos  ir.Pos // the zero value if it is about no place in a file
	Text string
	// IsWarning says that the file is probably not what the user means: a misspelt key.
	IsWarning bool
}

// String returns the remark with its place in front.
func (n Note) String() string {
	if n.Pos.File == "" {
		return n.Text
	}
	return n.Pos.String() + ": " + n.Text
}

// AddNote adds a remark, unless the same is there.
func (im *Import) AddNote(pos ir.Pos, format string, args ...any) {
	im.addNote(Note{Pos: pos, Text: fmt.Sprintf(format, args...)})
}

// Warn adds a remark about a probable input error, unless the same is there.
func (im *Import) Warn(pos ir.Pos, format string, args ...any) {
	im.addNote(Note{Pos: pos, Text: fmt.Sprintf(format, args...), IsWarning: true})
}

func (im *Import) addNote(n Note) {
	if !slices.Contains(im.Notes, n) {
		im.Notes = append(im.Notes, n)
	}
}

// Take records a key that sets fields of the job.
func (im *Import) Take(k Key, fields ...Field) {
	k.Use = Taken
	for _, f := range fields {
		f.Pos = k.Pos
		if f.From == "" {
			f.From = k.Name
		}
		k.As = append(k.As, f.Path+": "+f.Value)
		im.SetField(f)
	}
	im.Keys = append(im.Keys, k)
}

// Account records a key that sets no field of the job.
func (im *Import) Account(k Key, use Use, note string) {
	k.Use, k.Note = use, note
	im.Keys = append(im.Keys, k)
}

// SetField sets a field of the job. It replaces what an earlier key has set.
func (im *Import) SetField(f Field) {
	i := slices.IndexFunc(im.Fields, func(g Field) bool { return g.Path == f.Path })
	if i < 0 {
		im.Fields = append(im.Fields, f)
		return
	}
	im.Fields[i] = f
}

// DefaultField sets a field of the job, unless it is set: the trainer has a default that planc would otherwise search.
func (im *Import) DefaultField(path, value, from string) {
	if _, ok := im.Field(path); !ok {
		im.SetField(Field{Path: path, Value: value, From: from})
	}
}

// Field returns a field of the job.
func (im *Import) Field(path string) (Field, bool) {
	i := slices.IndexFunc(im.Fields, func(f Field) bool { return f.Path == path })
	if i < 0 {
		return Field{}, false
	}
	return im.Fields[i], true
}

// Has reports whether the file sets a field of the job or a field below it.
func (im *Import) Has(path string) bool {
	return slices.ContainsFunc(im.Fields, func(f Field) bool {
		return f.Path == path || strings.HasPrefix(f.Path, path+".")
	})
}

// fieldAt returns the field that a line of the job's text (see [Import.JobText]) sets, and the field's key in the
// user's file. ok is false for lines that set nothing.
func (im *Import) fieldAt(lines []string, line int) (Field, bool) {
	if line < 1 || line > len(lines) || lines[line-1] == "" {
		return Field{}, false
	}
	return im.Field(lines[line-1])
}

// Translate returns errors of the imported job as errors of the user's file: it moves their positions to the keys from
// which the fields come. job is the name under which the job's text was read.
func (im *Import) Translate(diags ir.Diags, job string) ir.Diags {
	_, lines := im.text()
	out := slices.Clone(diags)
	for i, d := range out {
		if d.Pos.File != job {
			continue
		}
		out[i].Pos = File{Name: im.Files[0]}.Top()
		f, ok := im.fieldAt(lines, d.Pos.Line)
		if !ok {
			continue
		}
		if f.Pos.File != "" {
			out[i].Pos = f.Pos
		}
		if f.From != "" && !strings.Contains(d.Msg, f.From) {
			out[i].Msg = fmt.Sprintf("%s: %s", f.From, d.Msg)
		}
	}
	return out
}
