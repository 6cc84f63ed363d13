package megatron

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
)

// The environment of a script: exports, and assignments in front of the launcher.

// otherEnv returns the environment as a text, without one variable, and without those that the script itself reads:
// they may change with the options that have their text.
func (src *source) otherEnv(without string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(src.env)) {
		if name != without && !shell.Reads(src.script, name) {
			fmt.Fprintf(&b, "%s=%s\n", name, src.env[name])
		}
	}
	return b.String()
}

// envWord returns the word of a variable's value; nil if the script does not set it.
func (d *document) envWord(name string) *shell.Word {
	if l := d.src.launcher; l != nil {
		for i := range l.Command.Env {
			if l.Command.Env[i].Name == name {
				return &l.Command.Env[i].Value
			}
		}
	}
	if w, ok := d.src.script.Exported[name]; ok {
		return &w
	}
	return nil
}

// setEnv sets an environment variable: where the script sets it, or by a new export in front of the launcher.
func (d *document) setEnv(v interop.Value) error {
	if got, ok := d.Get(v.Key); ok && got == v.Text {
		return nil
	}
	if w := d.envWord(v.Key); w != nil {
		for _, depth := range shell.Depths {
			edit, ok := d.src.script.Replace(w, v.Text, depth)
			if !ok {
				continue
			}
			if isDone, _ := d.try(v, []shell.Edit{edit}); isDone {
				return nil
			}
		}
	}
	at := 0
	if l := d.src.launcher; l != nil {
		at = max(0, l.Offset())
	}
	edit := d.src.script.InsertLine(at, "export "+v.Key+"="+v.Text)
	if isDone, _ := d.try(v, []shell.Edit{edit}); isDone {
		return nil
	}
	return fmt.Errorf("%s: %s=%s cannot be written into the script: add it by hand", d.file.Name, v.Key, v.Text)
}

// removeEnv deletes an environment variable.
func (d *document) removeEnv(name string) error {
	w := d.envWord(name)
	if w == nil {
		return nil
	}
	absent := interop.Value{Key: name, Env: true, IsAbsent: true}
	for _, edit := range d.src.script.RemoveAssignment(name, w) {
		if isDone, _ := d.try(absent, []shell.Edit{edit}); isDone {
			return nil
		}
	}
	return fmt.Errorf("%s: %s cannot be removed from the script: remove it by hand", d.file.Name, name)
}
