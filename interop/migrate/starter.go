package migrate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
)

// configOptions are options of programs and launchers whose value is the file that has the plan.
var configOptions = []string{"--deepspeed", "--deepspeed_config", "--config_file", "--job.config_file",
	"--job.config-file"}

// starter is a script that starts a trainer with a configuration.
type starter struct {
	pos     ir.Pos
	option  string
	config  string // the configuration's name in the script
	devices int    // 0 if the script does not say it
	perNode int
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
				return &starter{s.Pos(&words[at]), option, config, l.Total, l.PerNode}
			}
		}
	}
	return nil
}

// withoutStarters returns files without the scripts that only start a trainer with one of the others, whose numbers of
// devices become options.
func withoutStarters(files []interop.File, o *interop.Options) (out []interop.File, notes []interop.Note) {
	for _, f := range files {
		s := starterOf(f, o.Define)
		isOther := func(g interop.File) bool { return s != nil && path.Base(g.Name) == path.Base(s.config) }
		if !slices.ContainsFunc(files, isOther) {
			out = append(out, f)
			continue
		}
		notes = append(notes, interop.Note{Pos: s.pos, Text: fmt.Sprintf("the plan is that of %s; planc reads only "+
			"the number of devices from %s", s.config, f.Name)})
		if o.Devices == 0 && s.devices > 0 {
			o.Devices, o.DevicesPerNode = s.devices, s.perNode
		}
	}
	return out, notes
}

// unrecognized returns the error for files that no format recognizes. A script that starts a trainer with a
// configuration names the file to give instead.
func unrecognized(files []interop.File, define map[string]string) error {
	for _, f := range files {
		if s := starterOf(f, define); s != nil {
			return ir.Diags{{Pos: s.pos, Code: UnknownFormat, Msg: fmt.Sprintf("this script starts a trainer with "+
				"%s %s, which has the plan: give that file, alone or after %s", s.option, s.config, f.Name)}}
		}
	}
	return ir.Diags{{Pos: ir.Pos{File: files[0].Name}, Code: UnknownFormat,
		Msg: "this is no file of a trainer that planc recognizes; planc help formats lists the formats, and " +
			"--format NAME reads the file as one of them"}}
}
