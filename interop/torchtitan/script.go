package torchtitan

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// script is a shell script that starts torchtitan with a TOML file. The options of the command replace keys of the
// file.
type script struct {
	file    interop.File
	shell   *shell.Script
	words   []shell.Word // of the command, after the program
	command *shell.Command
	// config is the name of the TOML file, and configWord the word that has it.
	config     string
	configWord *shell.Word
	devices    int // 0 if the script does not say it
	perNode    int
	nodes      interop.NodeCount
	flags      []*flag
	keys       []interop.Key // that set no key of the file
	diags      ir.Diags
}

// Names of a script that starts torchtitan.
const (
	configKey    = "job.config_file"
	trainProgram = "torchtitan.train"
	// runTrain is torchtitan's own script, which takes the file and the number of devices from these variables.
	runTrain       = "run_train.sh"
	configVariable = "CONFIG_FILE"
	countVariable  = "NGPU"
)

// notScripts are extensions of files that are no scripts.
var notScripts = []string{".toml", ".json", ".jsonc", ".hjson", ".yaml", ".yml", ".py", ".md"}

// isScript reports whether a file is a script that starts torchtitan.
func isScript(f interop.File) bool {
	if slices.Contains(notScripts, strings.ToLower(path.Ext(f.Name))) {
		return false
	}
	has := func(word string) bool { return bytes.Contains(f.Data, []byte(word)) }
	return has(optionPrefix+configKey) || has("--job.config-file") || has(trainProgram) ||
		has(runTrain) && has(configVariable)
}

// readScript reads a script.
func readScript(f interop.File, o interop.Options) *script {
	define := map[string]string{}
	for _, d := range shell.Directives(f.Data) {
		for _, name := range d.Variables {
			define[name] = d.Value
		}
	}
	maps.Copy(define, o.Define)
	s := &script{file: f, shell: shell.Eval(f.Name, f.Data, define)}
	s.diags = slices.Clone(s.shell.Diags)
	if len(s.shell.Commands) == 0 && len(s.diags) > 0 {
		return s
	}
	if !s.readLaunch() && !s.readRunTrain() {
		s.explainNone()
		return s
	}
	if why := s.command.Undecided; why != nil {
		pos, msg := s.shell.Explain(why)
		s.diags.Addf(pos, Undefined, "%s (it decides whether torchtitan runs)", msg)
	}
	s.readFlags()
	return s
}

// readLaunch finds the command that starts torchtitan with a file: the first that certainly runs.
func (s *script) readLaunch() bool {
	var best *shell.Launch
	launches := s.shell.Launches()
	for i := range launches {
		l := &launches[i]
		if s.configOf(l.Command.Words[l.Start:]) != nil && (best == nil || best.Command.Undecided != nil) {
			best = l
		}
	}
	if best == nil {
		return false
	}
	s.command, s.words = best.Command, best.Command.Words[best.Start:]
	s.configWord = s.configOf(s.words)
	_, s.config, _ = strings.Cut(s.configWord.Text(), "=")
	if !strings.HasPrefix(s.configWord.Text(), optionPrefix) {
		s.config = s.configWord.Text()
	}
	s.devices, s.perNode = best.Total, best.PerNode
	if o, why := best.NodesAlone(); o != nil {
		s.nodes = interop.NodeCount{N: o.Number, Name: o.Name, Pos: o.Pos, Why: why}
	}
	for i := range best.Options {
		o := &best.Options[i]
		key := interop.Key{Pos: o.Pos, Name: o.Name, Value: s.shell.Shown(&o.Value), Use: interop.Taken,
			As: []string{"devices: " + strconv.Itoa(best.Total)}}
		if o.Unknown != nil || best.Total == 0 {
			key.Use, key.As = interop.Planned, nil
			key.Note = "the number of devices is not in the script: give --nodes and --devices"
		}
		s.keys = append(s.keys, key)
	}
	return true
}

// configOf returns the word that has the name of the TOML file; nil if there is none.
func (s *script) configOf(words []shell.Word) *shell.Word {
	for i := range words {
		name, _, hasValue := strings.Cut(words[i].Text(), "=")
		if name != optionPrefix+configKey && name != "--job.config-file" {
			continue
		}
		if hasValue {
			return &words[i]
		}
		if i+1 < len(words) {
			return &words[i+1]
		}
	}
	return nil
}

// readRunTrain finds the command that starts torchtitan by its own script: CONFIG_FILE=FILE ./run_train.sh --options.
func (s *script) readRunTrain() bool {
	for i := range s.shell.Commands {
		c := &s.shell.Commands[i]
		at := slices.IndexFunc(c.Words, func(w shell.Word) bool { return path.Base(w.Text()) == runTrain })
		if at < 0 {
			continue
		}
		file, ok := s.variable(c, configVariable)
		if !ok {
			continue
		}
		s.command, s.words, s.configWord, s.config = c, c.Words[at+1:], file, file.Text()
		s.keys = append(s.keys, interop.Key{Pos: s.shell.Pos(file), Name: configVariable, Value: s.shell.Shown(file),
			Use: interop.Taken})
		if count, ok := s.variable(c, countVariable); ok {
			s.perNode, _ = strconv.Atoi(count.Text())
			s.devices = s.perNode
			s.keys = append(s.keys, interop.Key{Pos: s.shell.Pos(count), Name: countVariable,
				Value: s.shell.Shown(count), Use: interop.Taken, As: []string{"devices: " + strconv.Itoa(s.devices)}})
		}
		return true
	}
	return false
}

// variable returns a variable in the environment of a command.
func (s *script) variable(c *shell.Command, name string) (w *shell.Word, ok bool) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			return &c.Env[i].Value, true
		}
	}
	exported, ok := s.shell.Exported[name]
	return &exported, ok
}

// explainNone reports that no command of the script starts torchtitan with a file.
func (s *script) explainNone() {
	for _, l := range s.shell.Launches() {
		if l.Program != trainProgram {
			continue
		}
		pos := s.shell.At(max(0, l.Offset()))
		for i := range l.Command.Words[l.Start:] {
			w := &l.Command.Words[l.Start+i]
			if name, _, _ := strings.Cut(w.Text(), "="); name == "--module" || name == "--config" {
				s.diags.Addf(s.shell.Pos(w), WrongDialect, "%s is an option of torchtitan 0.3, which has its plan in "+
					"Python, and planc reads the TOML files of 0.2: give a TOML file with the same keys", name)
				return
			}
		}
		s.diags.Addf(pos, NoConfig, "torchtitan starts without --%s here: add the option with the name of a TOML file",
			configKey)
		return
	}
	if s.shell.Exit != nil {
		pos, msg := s.shell.Exit.Explain(s.shell)
		s.diags.Addf(pos, NoConfig, "no command starts torchtitan with --%s: %s", configKey, msg)
		return
	}
	s.diags.Addf(s.file.Top(), NoConfig, "no command of this script starts torchtitan with --%s FILE, or %s "+
		"with %s=FILE",
		configKey, runTrain, configVariable)
}

// configFile returns the TOML file of the script: the one that is given, or the one that the script names.
func (s *script) configFile(given *interop.File, o interop.Options) (f interop.File, diags ir.Diags) {
	pos, why := s.shell.Pos(s.configWord), s.configWord.Unknown()
	switch {
	case given != nil && (why != nil || path.Base(given.Name) == path.Base(s.config) || given.Name == "-"):
		return *given, nil
	case given != nil:
		diags.Addf(pos, NoConfig, "the script starts torchtitan with %s, and %s is given: give the file that the "+
			"script names", s.config, given.Name)
	case why != nil:
		pos, msg := s.shell.Explain(why)
		diags.Addf(pos, Undefined, "the script does not say which TOML file it starts: %s, or give the file too", msg)
	default:
		name := path.Join(path.Dir(s.file.Name), s.config)
		isNear := o.Read != nil && !path.IsAbs(s.config) && !strings.HasPrefix(s.config, "~") && s.config != "-"
		if isNear {
			data, err := o.Read(name)
			if err == nil {
				return interop.File{Name: name, Data: data}, nil
			}
		}
		diags.Addf(pos, NoConfig, "this script starts torchtitan with %s, which has the plan: give that file, too, "+
			"after %s", s.config, s.file.Name)
	}
	return f, diags
}

// importWith reads the keys of a TOML file, of which the script's options replace some.
func (s *script) importWith(im *interop.Import, doc *tree.Doc, o interop.Options) error {
	im.Files = append([]string{doc.File, s.file.Name}, im.Files...)
	merged, diags := tree.Parse(tree.TOML, doc.File, doc.Bytes())
	first := len(im.Keys)
	s.apply(merged, im)
	s.note(im, o)
	if err := sorted(append(diags, s.diags...)).Err(); err != nil {
		return err
	}
	err := readKeys(im, merged, cmp.Or(o.Devices, s.devices), o)
	if err != nil {
		return err
	}
	s.rename(im, first)
	im.Nodes = s.nodes
	if o.Devices == 0 {
		im.Devices = cmp.Or(im.Devices, s.devices)
		im.DevicesPerNode = s.perNode
	}
	parts := interop.Parts{{Name: doc.File, Doc: doc},
		{Name: s.file.Name, Prefix: optionPrefix, Doc: &scriptDocument{s, o}}}
	im.Doc = parts
	im.Values = func(t *interop.Target) []interop.Value { return keepDerived(parts, t, s.spell(values(t))) }
	return nil
}

// apply replaces keys of a tree by the script's options, and records the options that replace none.
func (s *script) apply(doc *tree.Doc, im *interop.Import) {
	custom := doc.Root.Find("job.custom_config_module")
	hasCustom := custom != nil && custom.Text != ""
	last := map[string]*flag{}
	for _, f := range s.flags {
		last[f.key] = f
		hasCustom = hasCustom || f.key == "job.custom_config_module"
	}
	for _, f := range s.flags {
		key := interop.Key{Pos: f.pos, Name: f.spelled, Value: f.shown}
		_, isOther := otherDialects[f.key]
		switch {
		case !f.isKey && !isOther && !hasCustom:
			s.diags = append(s.diags, unknownOption(f))
		case !f.isKey && !isOther:
			im.Account(key, interop.Unsupported, "an option of job.custom_config_module, which planc does not know")
		case f.key == configKey:
			key.As = []string{doc.File}
			key.Use = interop.Taken
			im.Keys = append(im.Keys, key)
		case last[f.key] != f:
			im.Account(key, interop.IgnoredByTool, last[f.key].spelled+" on line "+strconv.Itoa(last[f.key].pos.Line)+
				" replaces it")
		case f.value == nil:
			im.Account(key, interop.NoEffect, "")
		default:
			s.replace(doc.Root, f, im)
		}
	}
	im.Keys = append(im.Keys, s.keys...)
}

// unknownOption is the error of an option that torchtitan does not have.
func unknownOption(f *flag) ir.Diag {
	if first, _, ok := strings.Cut(f.spelled, " "); ok {
		if _, _, isKey := rowOf(first); isKey {
			return ir.Diag{Pos: f.pos, Code: strict.UnknownKey, Msg: fmt.Sprintf("%s ...: quotes make this one "+
				"argument, "+
				"which is no option: remove the quotes around it", first)}
		}
	}
	return ir.Diag{Pos: f.pos, Code: strict.UnknownKey, Fix: nearestOption(f.key),
		Msg: fmt.Sprintf("torchtitan 0.2 has no option %s", f.spelled)}
}

// replace sets the key of an option in a tree.
func (s *script) replace(root *tree.Node, f *flag, im *interop.Import) {
	parts := strings.Split(f.key, ".")
	at := root
	for _, part := range parts[:len(parts)-1] {
		field := at.Field(part)
		if field == nil {
			field = &tree.Field{Key: part, Pos: f.pos, Value: &tree.Node{Kind: strict.Map, Pos: f.pos}}
			at.Fields = append(at.Fields, field)
		}
		at = field.Value
		if at.Kind != strict.Map {
			return // an error of the TOML file, which the reader reports
		}
	}
	last := parts[len(parts)-1]
	field := at.Field(last)
	if field == nil {
		at.Fields = append(at.Fields, &tree.Field{Key: last, Pos: f.pos, Value: f.value})
		return
	}
	im.Account(interop.Key{Pos: field.Pos, Name: f.key, Value: field.Value.Flow()}, interop.IgnoredByTool,
		fmt.Sprintf("%s replaces it (%s, line %d)", f.spelled, f.pos.File, f.pos.Line))
	field.Pos, field.Value = f.pos, f.value
}

// rename gives the keys and fields that come from options the options' names, and orders the keys: those of the TOML
// file, then those of the script, then those that no file has.
func (s *script) rename(im *interop.Import, from int) {
	for i := range im.Keys[from:] {
		k := &im.Keys[from+i]
		for _, f := range s.flags {
			if f.pos == k.Pos && f.key == k.Name {
				k.Name, k.Value = f.spelled, f.shown
			}
		}
	}
	for i := range im.Fields {
		field := &im.Fields[i]
		if f := s.find(field.From); f != nil && field.Pos.File != "" {
			field.From = f.spelled
		}
	}
	file := func(k *interop.Key) int {
		switch {
		case k.Pos.Line == 0:
			return 2
		case k.Pos.File == im.Files[0]:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(im.Keys[from:], func(a, b interop.Key) int {
		return cmp.Or(file(&a)-file(&b), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
}

// find returns the option that holds for a key; nil if the command does not have it.
func (s *script) find(key string) *flag {
	for _, f := range slices.Backward(s.flags) {
		if f.key == key && f.isKey {
			return f
		}
	}
	return nil
}

// spell returns the values of a plan with the options' names for the keys that options replace.
func (s *script) spell(all []interop.Value) (out []interop.Value) {
	for _, v := range all {
		if s.find(v.Key) != nil {
			if v.IsAbsent {
				out = append(out, v) // from the TOML file, too
			}
			v.Key = optionPrefix + v.Key
		}
		out = append(out, v)
	}
	return out
}

// note adds what in the script the user should know.
func (s *script) note(im *interop.Import, o interop.Options) {
	for i := range s.shell.Empty {
		u := &s.shell.Empty[i]
		im.AddNote(s.shell.At(u.At.Start), "$%s has no value, and this condition takes it as empty: type --define "+
			"%[1]s=VALUE if it has one", u.Name)
	}
	unread := shell.Unread(s.shell, o.Define)
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		im.AddNote(ir.Pos{}, "--define %s=%s has no effect: %s", name, o.Define[name], unread[name])
	}
	if o.Devices > 0 && s.devices > 0 && s.devices != o.Devices {
		im.AddNote(s.file.Top(), "the script starts %d processes, and the command line of planc says %d "+
			"devices: planc "+
			"takes %[2]d; change the script, too", s.devices, o.Devices)
	}
}
