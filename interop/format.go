package interop

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// File is a file of another trainer.
type File struct {
	Name string // as the user typed it, for messages
	Data []byte
}

// Top returns the position of the file's first character, for errors that are about the whole file.
func (f File) Top() ir.Pos { return ir.Pos{File: f.Name, Line: 1, Column: 1} }

// Options are what the user says about a file.
type Options struct {
	// Define has values of variables that a script takes from its environment or its arguments: "1", "NNODES"
	// (--define NNODES=4).
	Define map[string]string
	// Devices is the number of devices that the user gives; 0 if the user gives none. It replaces what a file says.
	// Some trainers derive parts of the plan from it: the ranks that share optimizer state, the global batch.
	Devices int
	// Read returns a file that another file names, by its path relative to the caller's folder: what a script sources.
	// It is nil if only the given files can be read.
	Read func(path string) ([]byte, error)
	// DevicesPerNode is the number of devices of a node of these Devices; 0 if it is not known.
	DevicesPerNode int
	// Model is the model that the user gives, which replaces that of the file; nil if the user gives none.
	Model *spec.Config
	// Nodes is the number of nodes that the user gives; 0 if the user gives none. In scripts, the variables that
	// launchers set have this value: NNODES, SLURM_NNODES.
	Nodes int
}

// On returns the options to read files for all devices of the nodes that they say, of which each has perNode, or for n
// devices if they say no nodes.
func (o Options) On(nodes NodeCount, n, perNode int) Options {
	o.Devices, o.DevicesPerNode = n, perNode
	if nodes.N > 0 {
		o.Devices = min(nodes.N, mostNodes) * perNode
	}
	return o
}

// mostNodes is more than any cluster has, and few enough to multiply.
const mostNodes = 1 << 30

// Format is one kind of file.
type Format struct {
	// Name is what users type: "megatron".
	Name string
	// Title describes a file of this format with its article: "a script of Megatron-LM".
	Title string
	// Written describes what export writes without a user's file, if it is not a file as Title describes it; else "".
	Written string
	// Tool is the trainer, or the launcher, that reads files of this format: "Megatron-LM".
	Tool string
	// Engine is the engine in planc's job file (train.engine) that runs plans of this format: "megatron". Import may
	// choose another for a file (Megatron-FSDP).
	Engine string
	// Engines are others whose plans files of this format say too: "megatron-fsdp".
	Engines []string
	// Parts are the formats of files that files of this format name: a ds_config.json. A file of this format that is
	// given with one is the main file.
	Parts []string
	// Recognize returns how surely a file has this format: 0 is no, Possible, Likely or Certain. It must be quick and
	// must not fail on any content. It is nil for formats that are only exported.
	Recognize func(f File) Confidence
	// Import reads a file, and others that belong to it: a config.json of the model, a ds_config.json that an
	// Accelerate configuration names. Errors are ir.Diags. It is nil for formats that are only exported.
	Import func(files []File, o Options) (*Import, error)
	// Values returns the keys of the format that say the target's plan, in the order in which they are written, also
	// those that must be absent. It is nil for launchers.
	Values func(t *Target) []Value
	// Refusals returns why the format cannot express the target's plan; Write returns them as its errors. It must be
	// cheap, because a search calls it for many plans. Nil: Write alone knows.
	Refusals func(t *Target) ir.Diags
	// Write returns a whole file for the target. Errors are ir.Diags: the target has something that the format cannot
	// express.
	Write func(t *Target) ([]byte, error)
	// HasVariables says that Import reads Options.Define.
	HasVariables bool
	// Ext is the extension of a written file, with its dot: ".sh".
	Ext string
}

// EngineOf returns the engine that runs an exported plan of a job: the job's own if files of the format say its plans,
// else the format's.
func (f *Format) EngineOf(job string) string {
	if slices.Contains(f.Engines, job) {
		return job
	}
	return f.Engine
}

// Confidence is how surely a file has a format.
type Confidence int

// The levels of Confidence.
const (
	No       Confidence = iota
	Possible            // words in the text that others use too
	Likely              // several keys, all of which the format has
	Certain             // a key or a program name that only this format has
)

// Target is what is exported: a plan with the job that it is for, on its hardware.
type Target struct {
	Plan ir.Plan
	// Job has the model (Job.Config) and the recipe (Job.Train).
	Job *spec.Job
	// Hardware has the numbers of nodes and devices, and the GPU.
	Hardware *costmodel.Cluster
	// Command is the command line that launchers start, word by word: a trainer's program and its arguments. If it is
	// empty, launchers start planc's own binary, ./train.
	Command []string
}

// Nodes returns the number of nodes and the devices of each.
func (t *Target) Nodes() (nodes, devices int) { return t.Hardware.Nodes, t.Hardware.Node.Devices }

// Value is a key of a format with the value that a plan needs.
type Value struct {
	// Key is spelled as the format's own documentation spells it: "--tensor-model-parallel-size",
	// "zero_optimization.stage".
	Key string
	// Text is the value as the format writes it, "" for a flag without a value.
	Text string
	// IsAbsent says that the key must not be in the file: the tool's default is what the plan needs.
	IsAbsent bool
	// Default is the text that means the same as an absent key, "" if there is none. A file that has a key which must
	// be absent keeps its line with this text.
	Default string
	// IsUnused says that the key has no effect in the plan, so that a file keeps what it has. IsAbsent is true, too.
	IsUnused bool
	// IsNeeded says that the file's other text for the key contradicts the plan, so that an edit sets the key even if
	// its value is the same for the file's own plan.
	IsNeeded bool
	// Plan lists the keys of planc's plan that the value says: "tp", or "recompute", "recompute_layers".
	Plan []string
	// Env says that the key is an environment variable, and not an option of the program.
	Env bool
	// Why explains a value that follows from the plan indirectly: "needed with tp on GPUs before Blackwell". Else "".
	Why string
}

// Document is a user's file, whose keys can be changed in place.
type Document interface {
	// Get returns the text of a key's value and whether the file has the key.
	Get(key string) (text string, ok bool)
	// Set changes the value of a key, or inserts the key next to related ones. It keeps comments, order, indentation,
	// quotes and continuation lines. It changes a variable's assignment where the key's value is that variable and
	// nothing else uses it.
	Set(v Value) error
	// Remove deletes a key, with its line if nothing else is on it.
	Remove(key string) error
	// Bytes returns the changed file.
	Bytes() []byte
}

// Finisher is a Document that removes, after all edits of a plan, keys that the trainer no longer accepts.
type Finisher interface {
	Finish() error
}

// Remarker is a Document that knows what its edits leave as it was.
type Remarker interface {
	// Remarks returns sentences for the user: that a variable keeps its value, because other arguments use it too, or
	// why a key left the file with the plan's.
	Remarks() []string
}
