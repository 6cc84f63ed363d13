package megatron

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
)

// importer turns settings into fields of a job.
type importer struct {
	*source
	s       *settings
	dialect *dialect
	out     *interop.Import
	fields  map[string][]interop.Field // by the setting that the file has
	notes   map[string]string          // of settings that set no field, or of which a part is not supported
	joint   map[string]bool            // settings that take part in the fields of others
	cluster int                        // devices: the file's, or those that the user gives
	// modelLayers is the number of layers of the model whose config.json is given; 0 if there is none.
	modelLayers int
	// givenLayers is the number of layers of the model that the user gives instead of the script's; 0 if there is none.
	givenLayers int
}

// Import reads a script, a command line or a log.
func Import(files []interop.File, o interop.Options) (*interop.Import, error) {
	return plain.importFiles(files, o)
}

// importFiles reads a script with the files that it sources, and the config.json of its model if that is given.
func (d *dialect) importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	main := d.mainFile(files, o)
	rest := slices.DeleteFunc(slices.Clone(files), func(f interop.File) bool { return f.Name == main.Name })
	open := opener(main, rest, o)
	if d == plain && isYAML(main) {
		return importYAML(main, nil, rest, o)
	}
	src := d.read(main, open, o)
	if src.script != nil && len(src.script.Diags) > 0 {
		return nil, src.script.Diags // its words are not those that the user means
	}
	if d == plain {
		f, isNamed, diags := src.yamlFile(open)
		if diags != nil {
			return nil, diags
		}
		if isNamed {
			rest = slices.DeleteFunc(rest, func(g interop.File) bool { return g.Name == f.Name })
			return importYAML(f, src, append([]interop.File{main}, rest...), o)
		}
	}
	im, err := src.importAs(d, append([]interop.File{main}, rest...), o)
	if im != nil && im.Doc != nil {
		im.Doc.(*document).open = open
	}
	return im, err
}

// takeModel takes the config.json that is given as the model.
func (im *importer) takeModel(files []interop.File) {
	if im.inYAML != "" {
		im.out.Files = append(im.out.Files, im.inYAML)
	}
	im.out.Files = append(im.out.Files, im.sourced()...)
	for _, f := range files {
		if slices.Contains(im.out.Files, f.Name) || !keytable.IsModel(f) {
			continue
		}
		im.diags = append(im.diags, keytable.TakeModel(im.out, f)...)
		im.modelLayers = max(im.modelLayers, keytable.Layers(im.out))
	}
}

// noteScript notes what in the script's evaluation the user should know.
func (im *importer) noteScript(o interop.Options) {
	unread := map[string]string{}
	if im.script != nil {
		unread = shell.Unread(im.script, o.Define)
		for i := range im.script.Empty {
			u := &im.script.Empty[i]
			im.out.AddNote(im.script.At(u.At.Start), "$%s has no value, and this condition takes it as empty: type "+
				"--define %[1]s=VALUE if it has one", u.Name)
		}
	}
	for _, name := range im.usedDefines {
		delete(unread, name)
	}
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		im.out.AddNote(ir.Pos{}, "--define %s=%s has no effect: %s", name, o.Define[name], unread[name])
	}
}

// importAs makes the import.
func (src *source) importAs(d *dialect, files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &importer{source: src, s: src.settings, dialect: d, fields: map[string][]interop.Field{},
		notes: map[string]string{}, joint: map[string]bool{}, cluster: src.devices}
	if o.Devices > 0 {
		im.cluster = o.Devices
	}
	if o.Model != nil {
		im.givenLayers = o.Model.Layers
	}
	im.out = &interop.Import{Format: d.format, Devices: src.devices, DevicesPerNode: src.perNode,
		Nodes: src.nodes, Env: src.env}
	if src.isLog {
		im.out.Log = src.log()
	}
	im.out.Files = []string{files[0].Name}
	im.out.Notes = slices.Clone(src.notes)
	im.takeModel(files[1:])
	im.noteScript(o)
	if len(src.settings.arguments) == 0 && src.diags == nil && src.script != nil && src.script.Exit != nil {
		pos, msg := src.script.Exit.Explain(src.script)
		src.diags.Addf(pos, Undefined, "no option of Megatron-LM found: %s", msg)
	}
	if len(src.settings.arguments) == 0 && src.diags == nil {
		src.diags.Addf(files[0].Top(), BadOption, "no option of Megatron-LM found: give a script that "+
			"starts it, its command line, or the list of arguments in its log")
	}
	if im.diags == nil {
		im.checkDegrees()
	}
	if err := im.diags.Err(); err != nil {
		return nil, err
	}
	checkPairs(im)
	(&planReader{im}).read()
	(&recipeReader{im}).read()
	(&batchReader{im}).read()
	if !im.out.Has("model") {
		im.model()
		im.missingShape(o)
	}
	if err := im.diags.Err(); err != nil {
		return nil, err
	}
	im.account()
	im.accountEnv()
	if d == plain {
		im.out.RefusedOn = func(c *costmodel.Cluster) ir.Diags { return refusedOn(im, c) }
	}
	if !src.isDump {
		im.out.Doc = &document{dialect: d, file: files[0], options: o, src: src, original: src,
			before: files}
	}
	if !src.isDump || src.isLog {
		im.keepWays()
	}
	return im.out, nil
}

// refusedOn returns the options that Megatron-LM refuses on a cluster's GPUs.
func refusedOn(im *importer, c *costmodel.Cluster) ir.Diags {
	const grouped = "moe_grouped_gemm"
	if !im.s.flag(grouped) || runsGroupedGEMM(c.GPU.Arch) {
		return nil
	}
	return ir.Diags{{Pos: im.s.pos(grouped), Code: BadOption, Msg: fmt.Sprintf("%s needs GPUs of compute capability "+
		"8.0 or later, and %s has %s: remove it", im.name(grouped), c.GPU.Name, c.GPU.Arch)}}
}

// missingShape reports a script that gives the model's shape without one of the options that Megatron-LM needs.
func (im *importer) missingShape(o interop.Options) {
	needed := []string{"num_layers", "hidden_size", "num_attention_heads"}
	missing := slices.DeleteFunc(slices.Clone(needed), im.s.has)
	if len(missing) != 1 || o.Model != nil || im.layers() > 0 && missing[0] == needed[0] {
		return
	}
	next := needed[0]
	if next == missing[0] {
		next = needed[1]
	}
	im.fail(next, "%s is missing: add it next to %s, or give the model with --model", im.name(missing[0]),
		im.name(next))
}

// keepWays makes edits say what the script says in its way: the virtual stages by their number of layers, the batch by
// a schedule, and the layers of multi-token prediction in a layout of stages.
func (im *importer) keepWays() {
	byLayers, bySchedule := im.s.has(layersOfChunk), im.s.has(scheduleDest)
	predicted := im.s.number(predictedLayers)
	if !byLayers && !bySchedule && predicted == 0 {
		return
	}
	values, d := Values, im.dialect
	if d == swift {
		values = SwiftValues
	}
	spell := func(dest string) string { return d.spell(options().byDest[dest][0]) }
	im.out.Values = func(t *interop.Target) []interop.Value {
		all := values(t)
		if byLayers {
			all = withLayersOfChunk(all, &t.Plan, spell)
		}
		all = WithPredictedLayers(all, predicted, spell(layoutOfStages))
		if bySchedule {
			all = slices.DeleteFunc(all, func(v interop.Value) bool { return v.Key == spell(globalDest) })
		}
		return all
	}
}

// set sets a field of the job from a setting, or from the setting's default if the file does not have it.
func (im *importer) set(path string, value any, dest string) {
	f := interop.Field{Path: path, Value: fmt.Sprint(value)}
	if im.s.has(dest) {
		im.fields[dest] = append(im.fields[dest], f)
		return
	}
	im.out.DefaultField(path, f.Value, "default of "+im.name(dest))
}

// assume sets a field that follows from the absence of options.
func (im *importer) assume(path string, value any, why string) {
	im.out.DefaultField(path, fmt.Sprint(value), why)
}

// note explains a setting that is read and sets no field.
func (im *importer) note(dest, text string) { im.notes[dest] = text }

// name returns how the dialect writes the option of a setting.
func (im *importer) name(dest string) string {
	if im.s.has(dest) {
		return im.s.spelled(dest)
	}
	if list := options().byDest[dest]; len(list) > 0 {
		return im.dialect.spell(list[0])
	}
	return dest
}

// top returns the position of errors about options that the file does not have: that of the command which starts
// Megatron-LM, or else that of the file.
func (im *importer) top() ir.Pos {
	if im.launcher != nil && im.launcher.Offset() >= 0 {
		return im.script.At(im.launcher.Offset())
	}
	return interop.File{Name: im.out.Files[0]}.Top()
}

// fail reports a setting's error.
func (im *importer) fail(dest, format string, args ...any) {
	pos := im.s.pos(dest)
	if pos.File == "" {
		pos = im.top()
	}
	d := ir.Diag{Pos: pos, Code: BadOption, Msg: fmt.Sprintf(format, args...)}
	if !slices.Contains(im.diags, d) { // several fields can follow from one option
		im.diags = append(im.diags, d)
	}
}

// replacedBy says which argument replaces another one.
func replacedBy(a, by *argument) string {
	switch {
	case by == nil || by.spelled == a.spelled:
		return "a later " + a.spelled + " replaces it"
	case by.text() == a.text() && by.on == a.on:
		return by.spelled + " says it too"
	}
	return by.spelled + " replaces it"
}

// account adds all keys of the file in their order.
func (im *importer) account() {
	for _, a := range im.s.arguments {
		key := interop.Key{Pos: a.pos, Name: a.spelled, Value: im.shown(a)}
		switch {
		case a.option == nil:
			im.accountOther(key, a)
		case im.s.byDest[a.option.Dest] != a:
			im.out.Account(key, interop.IgnoredByTool, replacedBy(a, im.s.byDest[a.option.Dest]))
		default:
			im.accountOption(key, a)
		}
	}
	im.out.Keys = append(im.out.Keys, im.launch...)
	slices.SortStableFunc(im.out.Keys, func(a, b interop.Key) int {
		if a.Pos.File != b.Pos.File {
			return slices.Index(im.out.Files, a.Pos.File) - slices.Index(im.out.Files, b.Pos.File)
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
}

// otherProgram explains an option that Megatron-LM does not have.
func (im *importer) otherProgram(a *argument) string {
	if note := im.dialect.notes[strings.TrimPrefix(a.spelled, "--")]; note != "" {
		return note
	}
	if im.dialect == plain {
		return "is no option of " + Version
	}
	return "planc does not know this option: its cost is not in the prediction"
}

// noteMisspelt warns of an option of ms-swift that is probably a misspelt one of those that decide the plan.
func (im *importer) noteMisspelt(a *argument) {
	name := strings.TrimPrefix(a.spelled, "--")
	_, isKnown := im.dialect.notes[name]
	if im.dialect != swift || isKnown || im.suggested == mostSuggestions {
		return
	}
	im.suggested++
	if fix := nearestSwift(name); fix != nil && im.s.byDest[fix.Dest] == nil {
		im.out.Warn(a.pos, "planc does not know %s; did you mean %s? ms-swift refuses options that it does not have",
			a.spelled, spellSwift(fix))
	}
}

// accountOption adds the key of an option that holds.
func (im *importer) accountOption(key interop.Key, a *argument) {
	o := a.option
	fields, note := im.fields[o.Dest], im.notes[o.Dest]
	switch {
	case a.unknown != nil && o.use == "taken":
		_, msg := im.script.Explain(a.unknown)
		im.out.Account(key, interop.Unsupported, msg)
	case len(fields) > 0:
		key.Note = note
		im.out.Take(key, fields...)
	case o.use == "unsupported" && !a.isDefault():
		im.out.Account(key, interop.Unsupported, o.note)
	case note != "":
		im.out.Account(key, interop.Unsupported, note)
	case im.joint[o.Dest]:
		key.Use = interop.Taken
		im.out.Keys = append(im.out.Keys, key)
	case o.use == "taken":
		im.out.Account(key, interop.NoEffect, "has no effect with the other options")
	default:
		im.out.Account(key, interop.NoEffect, o.note)
	}
}

// shown returns an argument's value as the file writes it.
func (src *source) shown(a *argument) string {
	if src.script == nil || len(a.words) == 0 {
		if a.option != nil && a.option.isFlag() {
			return map[bool]string{true: "", false: "False"}[a.on || !src.isDump]
		}
		return a.text()
	}
	var words []string
	for i := range a.words {
		words = append(words, src.script.Shown(&a.words[i]))
	}
	return strings.Join(words, " ")
}

// planEnv says what the environment variables do that belong to a plan.
var planEnv = map[string]string{
	connectionsEnv:            "orders the kernels of tensor and context parallelism",
	"PYTORCH_CUDA_ALLOC_CONF": "changes how much memory PyTorch's allocator wastes",
	"PYTORCH_ALLOC_CONF":      "changes how much memory PyTorch's allocator wastes",
}

// accountEnv adds the environment variables.
func (im *importer) accountEnv() {
	if im.script == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(im.env)) {
		key := interop.Key{Name: name, Value: im.env[name], Pos: im.envPos(name)}
		im.out.Account(key, interop.NoEffect, planEnv[name])
	}
}

// envPos returns where a variable is set.
func (im *importer) envPos(name string) ir.Pos {
	if w, ok := im.script.Exported[name]; ok && w.Offset() >= 0 {
		return im.script.Pos(&w)
	}
	if im.launcher != nil {
		i := slices.IndexFunc(im.launcher.Command.Env, func(a shell.Assignment) bool { return a.Name == name })
		if i >= 0 {
			return im.script.At(im.launcher.Command.Env[i].Start)
		}
	}
	return im.top()
}
