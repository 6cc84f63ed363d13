package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// Codes of input errors in files of other trainers.
const (
	// UnknownFormat is reported for a file that no format recognizes, and for a name that no format has.
	//
	// Example:
	//	planc check README.md
	UnknownFormat ir.Code = "UnknownFormat"

	// UnrelatedFile is reported for a file that is given with others and that their training does not read.
	//
	// Example:
	//	planc check run.sh pyproject.toml
	UnrelatedFile ir.Code = "UnrelatedFile"

	// CannotExport is reported for a plan that a trainer's file cannot express, or that the trainer cannot run.
	//
	// Example:
	//	planc export megatron --set plan.schedule=zb-v
	CannotExport ir.Code = "CannotExport"
)

// Source is what files of another trainer say.
type Source struct {
	*interop.Import
	Format *interop.Format
	// Sure is how sure the format was recognized; Certain if the user named it.
	Sure interop.Confidence

	files   []interop.File
	options interop.Options
	// sharding are the fields that setReplicas replaced.
	sharding []interop.Field
}

// Read imports files. name is the format's name; "" recognizes it.
func Read(files []interop.File, name string, o interop.Options) (*Source, error) {
	s := &Source{Sure: interop.Certain, files: files, options: o}
	err := cmp.Or(modelAlone(files), windowsScripts(files))
	if err != nil {
		return nil, err
	}
	switch name {
	case "":
		if err := ofOtherTrainer(files); err != nil {
			return nil, err
		}
		s.Format, s.Sure = formats.Recognize(files)
		if s.Format == nil {
			return nil, unrecognized(files, o.Define)
		}
	default:
		s.Format, err = FormatOf(name)
		if err == nil && name == hf.Format.Name {
			err = optionsOfTrainer(files)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.Format.Import == nil {
		return nil, ir.Diags{{Code: UnknownFormat,
			Msg: fmt.Sprintf("planc writes files of format %s and does not read them; planc help formats lists those "+
				"that it reads", name)}}
	}
	var notes []interop.Note
	var nodes interop.NodeCount
	isGiven := o.Devices > 0
	if !s.Format.HasVariables {
		files, nodes, notes = withoutStarters(files, &o)
		s.files, s.options = files, o
	}
	s.Import, err = s.Format.Import(files, o)
	if err != nil {
		return nil, err
	}
	if err := unread(s); err != nil {
		return nil, err
	}
	s.Notes = append(s.Notes, notes...)
	if nodes.N > 0 {
		s.Nodes = nodes
	}
	if len(notes) > 0 && !isGiven && s.Devices == 0 {
		s.Devices, s.DevicesPerNode = o.Devices, o.DevicesPerNode
	}
	if !s.Format.HasVariables {
		for _, name := range slices.Sorted(maps.Keys(o.Define)) {
			s.AddNote(ir.Pos{}, "--define %s=%s has no effect: %s is no script", name, o.Define[name], s.Main())
		}
	}
	if s.Engine != "" {
		s.DefaultField("train.engine", s.Engine, s.Format.Title)
	}
	setReplicas(s, nil)
	return s, nil
}

// unread returns an error if a file is given that the import does not read.
func unread(s *Source) error {
	var diags ir.Diags
	for _, f := range s.files {
		if slices.Contains(s.Files, f.Name) {
			continue
		}
		own := ""
		if _, sure := formats.Recognize([]interop.File{f}); sure == interop.Certain {
			own = ", which has a plan of its own"
		}
		diags.Addf(f.Top(), UnrelatedFile, "%s does not read this file%s: give only the files of one training",
			s.Main(), own)
	}
	return diags.Err()
}

// ReadFor is Read for the cluster of some overrides. If the files do not say on how many devices they train, they train
// on all of that cluster, and if the overrides say it, they replace what the files say.
func ReadFor(files []interop.File, name string, o interop.Options, read planner.ReadFile,
	overrides []spec.Override) (*Source, error) {
	s, err := readOn(files, name, o, read, overrides)
	if err == nil {
		noteReplaced(s, overrides)
	}
	return s, err
}

// readOn is ReadFor without its notes about overrides.
func readOn(files []interop.File, name string, o interop.Options, read planner.ReadFile,
	overrides []spec.Override) (*Source, error) {
	overrides = asNodes(overrides)
	o.Model = modelOf(read, overrides)
	n, perNode, isGiven := devicesOf(read, overrides)
	o.Read = once(read)
	if isGiven {
		o.Devices, o.DevicesPerNode, o.Nodes = n, perNode, n/max(1, perNode)
		return Read(files, name, o)
	}
	s, err := Read(files, name, o)
	if err != nil || s.Devices > 0 || n == 0 {
		return s, err
	}
	isOneNode := s.Nodes.N == 0 && n == perNode && s.Format.Ext == scriptExt
	s, err = readOnNodes(files, name, o.On(s.Nodes, n, perNode))
	if err == nil && isOneNode {
		noteOneNode(s, perNode)
	}
	return s, err
}

// noteOneNode notes that files which start a run do not say on how many devices, so that one node is taken.
func noteOneNode(s *Source, perNode int) {
	var options []string
	for _, k := range s.Keys {
		if k.Use == interop.Planned && strings.Contains(k.Value, "$") { // of the launcher
			options = append(options, k.Name)
		}
	}
	why := ""
	switch len(options) {
	case 0:
	case 1:
		why = " (" + options[0] + " has no value here)"
	default:
		why = " (" + interop.Joined(options) + " have no value here)"
	}
	s.AddNote(interop.File{Name: s.Main()}.Top(), "the number of devices is not in the file%s: planc takes one node "+
		"with %d; if the run uses another number, give --nodes N", why, perNode)
}

// once returns a function that reads each file once.
func once(read planner.ReadFile) func(path string) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	seen := map[string]result{}
	return func(path string) ([]byte, error) {
		r, ok := seen[path]
		if !ok {
			r.data, r.err = read(path)
			seen[path] = r
		}
		return r.data, r.err
	}
}

// modelOf returns the model that overrides name; nil if they name none.
func modelOf(read planner.ReadFile, overrides []spec.Override) *spec.Config {
	i := slices.IndexFunc(overrides, func(o spec.Override) bool { return o.Key == "model" })
	if i < 0 {
		return nil
	}
	config, err := spec.LoadModel(overrides[i].Value, read)
	if err != nil {
		return nil // loading the job reports it
	}
	return config
}

// devicesOf returns the number of devices of the cluster that overrides describe and that of a node, 0 if they describe
// none. isGiven says that they give the number itself, and not only the kind of node.
func devicesOf(read planner.ReadFile, overrides []spec.Override) (n, perNode int, isGiven bool) {
	ref := costmodel.Ref{}
	for _, o := range overrides {
		number, err := strconv.Atoi(o.Value)
		switch o.Key {
		case "cluster.node", "cluster":
			count, node := spec.ShortCluster(o.Value)
			ref.Node = o.Value
			if count > 0 {
				ref, isGiven = costmodel.Ref{Node: node, Count: count}, true
			}
		case "cluster.nodes":
			ref.Nodes, isGiven = number, err == nil
		case "cluster.devices":
			ref.Devices, isGiven = number, err == nil
		}
	}
	if ref.Node == "" {
		return 0, 0, false
	}
	c, err := costmodel.Resolve(ref, nil, read)
	if err != nil {
		return 0, 0, false // loading the job reports it
	}
	return c.Devices(), c.Node.Devices, isGiven
}

// FormatOf returns the format with a name.
func FormatOf(name string) (*interop.Format, error) {
	if f := formats.Find(name); f != nil {
		return f, nil
	}
	return nil, ir.Diags{{Code: UnknownFormat, Fix: formats.Nearest(name),
		Msg: fmt.Sprintf("there is no format %s; planc help formats lists them", name)}}
}

// Main returns the name of the file that has the plan.
func (s *Source) Main() string { return s.Files[0] }

// jobPath is the path under which the job that the files describe is read. Paths in it are relative to the main file.
func (s *Source) jobPath() string {
	name := filepath.Base(s.Main())
	if s.Main() == "-" {
		return "stdin.yaml"
	}
	return filepath.Join(filepath.Dir(s.Main()), strings.TrimSuffix(name, filepath.Ext(name))+".yaml")
}

// Question returns the job that the files describe, with overrides. Errors are at positions in the files.
func (s *Source) Question(read planner.ReadFile, overrides ...spec.Override) (*planner.Question, error) {
	own := func(path string) ([]byte, error) {
		if path == s.jobPath() {
			return s.JobText(), nil
		}
		return read(path)
	}
	overrides = asNodes(overrides)
	if derivesSteps(s, overrides) {
		s.Fields = slices.DeleteFunc(s.Fields, func(f interop.Field) bool { return f.Path == "plan.micro_batches" })
	}
	if setsModel(overrides) { // the file's number of recomputed blocks is that of its own model
		s.Fields = slices.DeleteFunc(s.Fields, func(f interop.Field) bool { return f.OfModel })
	}
	setReplicas(s, overrides)
	load := func(more ...spec.Override) (*planner.Question, error) {
		return planner.Load(s.jobPath(), own, slices.Concat(s.cluster(own, overrides), overrides, more)...)
	}
	q, err := load()
	if n := wholeChunk(q); err == nil && n > 0 {
		s.DefaultField("plan.recompute_layers", strconv.Itoa(n), "all blocks are recomputed")
		q, err = load()
	}
	err = withRanks(s, err, load)
	if err == nil && s.RefusedOn != nil {
		err = s.RefusedOn(q.Hardware).Err()
	}
	return q, s.explainModel(withoutBatch(s, s.translated(err)))
}

// explainModel adds to the error of a missing model what the files name: a model that the catalogue does not have.
func (s *Source) explainModel(err error) error {
	var diags ir.Diags
	if s.Model.Value == "" && s.NoModel == "" || !errors.As(err, &diags) {
		return err
	}
	for i := range diags {
		switch {
		case !strings.Contains(diags[i].Msg, "model is missing"):
		case s.Model.Value == "":
			diags[i].Msg = "model is missing: " + s.NoModel
		default:
			diags[i].Pos = s.Model.Pos
			diags[i].Msg = fmt.Sprintf("model is missing: the catalogue does not have %s; add the model's config.json "+
				"as a second file", s.Model.Value)
		}
	}
	return diags
}

// withoutBatch returns the errors without that of a missing global batch if the cluster is wrong or missing too, and
// the files have a micro-batch: the batch follows from it and the number of devices.
func withoutBatch(s *Source, err error) error {
	var diags ir.Diags
	isOfCluster := func(d ir.Diag) bool {
		return d.Code == costmodel.UnknownCluster || strings.HasPrefix(d.Msg, "cluster is missing")
	}
	if !errors.As(err, &diags) || !s.Has("plan.micro_batch") || !slices.ContainsFunc(diags, isOfCluster) {
		return err
	}
	return slices.DeleteFunc(diags, func(d ir.Diag) bool {
		return strings.HasPrefix(d.Msg, "train.global_batch is missing")
	})
}

// derivesSteps reports whether overrides set another global batch than the files', from which and from a given
// micro-batch the number of micro-batches follows. Without a micro-batch, the files' number of micro-batches holds.
func derivesSteps(s *Source, overrides []spec.Override) bool {
	own, _ := s.Import.Field("train.global_batch")
	isOther, hasMicro := false, s.Has("plan.micro_batch")
	for _, o := range overrides {
		switch o.Key {
		case "train.global_batch":
			isOther = isOther || !isSame(own.Value, o.Value)
		case "train.global_batch_tokens":
			isOther = true
		case "plan.micro_batch":
			hasMicro = true
		}
	}
	return isOther && hasMicro
}

// setsModel reports whether overrides set the model, or its number of blocks.
func setsModel(overrides []spec.Override) bool {
	return slices.ContainsFunc(overrides, func(o spec.Override) bool {
		return o.Key == "model" || strings.HasPrefix(o.Key, "model.")
	})
}

// wholeChunk returns the number of blocks of a chunk if a job recomputes blocks without saying how many: trainers
// recompute all blocks unless a file limits them. It returns 0 for other jobs.
func wholeChunk(q *planner.Question) int {
	if q == nil {
		return 0
	}
	p := &q.Plan
	if len(p.Recompute.Values) != 1 || p.Recompute.Values[0] == "none" || !p.RecomputeLayers.Free() {
		return 0
	}
	if !p.StageLayers.Free() {
		return slices.Max(p.StageLayers.Values)
	}
	chunks := 1
	for _, pin := range []spec.Pin[int]{p.PP, p.VPP} {
		if len(pin.Values) == 1 {
			chunks *= max(1, pin.Values[0])
		}
	}
	return (q.Config.Layers + chunks - 1) / chunks
}

// translated returns an error with its positions in the user's files.
func (s *Source) translated(err error) error {
	var diags ir.Diags
	if !errors.As(err, &diags) {
		return err
	}
	diags = s.Translate(diags, s.jobPath())
	for i := range diags {
		if diags[i].Pos != (ir.Pos{File: devicesName(s)}) {
			continue
		}
		_, diags[i].Pos = s.devicesFrom() // see cluster
		if diags[i].Pos.Line == 0 {
			diags[i].Pos = interop.File{Name: s.Main()}.Top()
		}
	}
	return diags
}

// asNodes returns overrides in which cluster=NAME is cluster.node=NAME, as --cluster NAME is: it says the kind of node,
// and not how many devices a run has.
func asNodes(overrides []spec.Override) []spec.Override {
	out := slices.Clone(overrides)
	for i := range out {
		o := &out[i]
		if o.Key == "cluster" && o.Value != "null" && !strings.ContainsAny(o.Value, "{:") {
			o.Key = "cluster.node"
		}
	}
	return out
}

// cluster returns the overrides that set the number of devices which the files say, unless the user's overrides or the
// imported job do.
func (s *Source) cluster(read planner.ReadFile, overrides []spec.Override) []spec.Override {
	if s.Devices == 0 || s.Has("cluster") {
		return nil
	}
	node := ""
	for _, o := range overrides {
		switch o.Key {
		case "cluster.node":
			node = o.Value
		case "cluster", "cluster.nodes", "cluster.devices":
			return nil
		}
	}
	if count, _ := spec.ShortCluster(node); count > 0 {
		return nil
	}
	whole, err := costmodel.Resolve(costmodel.Ref{Node: node}, nil, read)
	if err != nil {
		return nil // loading the job reports it
	}
	perNode := s.DevicesPerNode
	if perNode == 0 {
		perNode = min(whole.Node.Devices, s.Devices)
	}
	nodes := (s.Devices + perNode - 1) / perNode
	set := func(key string, n int) spec.Override {
		return spec.Override{Key: key, Value: strconv.Itoa(n), Shown: devicesName(s)}
	}
	out := []spec.Override{set("cluster.nodes", nodes)}
	if perNode != whole.Node.Devices {
		out = append(out, set("cluster.devices", perNode))
	}
	return out
}

// Add sets fields of the imported job from overrides, so that its text has them.
func (s *Source) Add(read planner.ReadFile, overrides ...spec.Override) {
	overrides = asNodes(overrides)
	for _, o := range slices.Concat(s.cluster(read, overrides), overrides) {
		s.Fields = slices.DeleteFunc(s.Fields, func(f interop.Field) bool {
			return strings.HasPrefix(f.Path, o.Key+".") || strings.HasPrefix(o.Key, f.Path+".")
		})
		if o.Value == "null" {
			s.Fields = slices.DeleteFunc(s.Fields, func(f interop.Field) bool { return f.Path == o.Key })
			continue
		}
		field := interop.Field{Path: o.Key, Value: o.Value, From: o.Shown}
		if o.Shown == devicesName(s) {
			field.From, field.Pos = s.devicesFrom()
		}
		s.SetField(field)
	}
}

// devicesFrom returns what says the number of devices, with its position: a launcher's option, or else the file.
func (s *Source) devicesFrom() (string, ir.Pos) {
	for i := range s.Keys {
		k := &s.Keys[i]
		if slices.ContainsFunc(k.As, func(field string) bool { return strings.HasPrefix(field, "devices: ") }) {
			return k.Name, k.Pos
		}
	}
	return devicesName(s), ir.Pos{}
}

// devicesName names the overrides of cluster.
func devicesName(s *Source) string { return "number of devices in " + s.Main() }

// Counts returns how many keys of the files are used in each way.
func (s *Source) Counts() map[interop.Use]int {
	out := map[interop.Use]int{}
	for _, k := range s.Keys {
		out[k.Use]++
	}
	return out
}
