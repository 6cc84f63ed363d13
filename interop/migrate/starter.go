package migrate

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// configOptions are options of programs and launchers whose value is the file that has the plan.
var configOptions = []string{"--deepspeed", "--deepspeed_config", "--config_file"}

// starter is a script that starts a trainer with a configuration.
type starter struct {
	pos     ir.Pos
	option  string
	config  string // the configuration's name in the script
	devices int    // 0 if the script does not say it
	perNode int
	nodes   interop.NodeCount // of a script that does not say devices
}

// starterOf returns what a script starts; nil if it starts no trainer with a configuration.
func starterOf(f interop.File, define map[string]string) *starter {
	s := shell.Eval(f.Name, f.Data, define)
	for _, l := range s.Launches() {
		words := l.Command.Words
		for i := range words {
			option, config, hasValue := strings.Cut(words[i].Text(), "=")
			at := i
			if !hasValue && i+1 < len(words) {
				at, config = i+1, words[i+1].Text()
			}
			if slices.Contains(configOptions, option) && config != "" {
				return &starter{s.Pos(&words[at]), option, config, l.Total, l.PerNode, nodesOf(&l)}
			}
		}
	}
	return nil
}

// withoutStarters returns files without the scripts that only start a trainer with one of the others, whose numbers of
// devices become options. nodes is their number of nodes if they do not say the number of devices.
func withoutStarters(files []interop.File, o *interop.Options) (out []interop.File, nodes interop.NodeCount,
	notes []interop.Note) {
	if len(files) == 1 {
		return files, nodes, nil
	}
	for _, f := range files {
		s := starterOf(f, o.Define)
		isOther := func(g interop.File) bool { return s != nil && path.Base(g.Name) == path.Base(s.config) }
		if !slices.ContainsFunc(files, isOther) {
			out = append(out, f)
			continue
		}
		notes = append(notes, interop.Note{Pos: s.pos, Text: fmt.Sprintf("the plan is that of %s; planc reads only "+
			"the number of devices from %s", s.config, f.Name)})
		nodes = s.nodes
		if o.Devices == 0 && s.devices > 0 {
			o.Devices, o.DevicesPerNode = s.devices, s.perNode
		}
	}
	return out, nodes, notes
}

// modelAlone returns an error if all files are models, which have no plan.
func modelAlone(files []interop.File) error {
	isOther := func(f interop.File) bool { return !keytable.IsModel(f) }
	if len(files) == 0 || slices.ContainsFunc(files, isOther) {
		return nil
	}
	name := files[0].Name
	switch {
	case name == "-":
		name = "config.json"
	case strings.ContainsAny(name, " \t'\"$&;()"):
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return ir.Diags{{Pos: files[0].Top(), Code: UnknownFormat, Msg: fmt.Sprintf("this is a model, which has no plan: "+
		"give the trainer's file with it (planc check run.sh %s), or search the best plan (planc plan --model %s "+
		"--cluster NAME --global-batch N --seq-len N)", name, name)}}
}

// windowsScripts returns an error if a script's lines end in CR LF, which bash does not read.
func windowsScripts(files []interop.File) error {
	var diags ir.Diags
	for _, f := range files {
		if path.Ext(f.Name) == ".sh" {
			diags = append(diags, shell.LineEnds(f.Name, f.Data)...)
		}
	}
	return diags.Err()
}

// broken returns why a file has no keys to recognize: it is empty, or not written in the syntax of its extension.
func broken(f interop.File) (diags ir.Diags) {
	syntax := tree.SyntaxOf(f)
	ext := strings.ToLower(filepath.Ext(f.Name))
	switch {
	case len(bytes.TrimSpace(f.Data)) == 0:
		diags.Addf(f.Top(), strict.Empty, "the file is empty")
	case syntax == tree.JSON:
		_, diags = tree.Parse(tree.Hjson, f.Name, f.Data) // all that a trainer reads
	case slices.Contains([]string{".toml", ".yaml", ".yml"}, ext):
		_, diags = tree.Parse(syntax, f.Name, f.Data)
	}
	return diags
}

// unrecognized returns the error for files that no format recognizes. A script that starts a trainer with a
// configuration names the file to give instead.
func unrecognized(files []interop.File, define map[string]string) error {
	for _, f := range files {
		if diags := broken(f); len(diags) > 0 {
			return diags
		}
		if err := optionsOfTrainer([]interop.File{f}); err != nil {
			return err
		}
		if s := starterOf(f, define); s != nil {
			return ir.Diags{{Pos: s.pos, Code: UnknownFormat, Msg: fmt.Sprintf("this script starts a trainer with "+
				"%s %s, which has the plan: give that file, alone or after %s", s.option, s.config, f.Name)}}
		}
	}
	return ir.Diags{{Pos: files[0].Top(), Code: UnknownFormat,
		Msg: "this is no file of a trainer that planc recognizes; planc help formats lists the formats, and " +
			"--format NAME reads the file as one of them"}}
}
