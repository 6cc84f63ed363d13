package torchtitan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// scriptDocument is a script whose options of torchtitan can be changed in place. Its keys are those of the TOML file.
// After each change the script is read again, so that a change is known to have its effect and no other.
type scriptDocument struct {
	script  *script
	options interop.Options
}

var _ interop.Document = (*scriptDocument)(nil)

// Bytes returns the changed script.
func (d *scriptDocument) Bytes() []byte { return d.script.file.Data }

// Get returns the value of an option, in the form of a TOML file.
func (d *scriptDocument) Get(key string) (text string, ok bool) {
	f := d.script.find(key)
	if f == nil || f.value == nil {
		return "", false
	}
	return f.value.Flow(), true
}

// Set changes the value of an option that the script has.
func (d *scriptDocument) Set(v interop.Value) error {
	if v.IsAbsent {
		return d.Remove(v.Key)
	}
	f := d.script.find(v.Key)
	if f == nil {
		return ir.Diags{{Pos: d.script.file.Top(), Code: tree.CannotEdit,
			Msg: fmt.Sprintf("the script has no option --%s", v.Key)}}
	}
	words := commandWords(v.Text)
	if want := strings.Join(words, " "); want == f.shown {
		return nil
	}
	for _, depth := range shell.Depths {
		if edits, ok := d.replace(f, words, depth); ok && d.try(v.Key, words, edits) {
			return nil
		}
	}
	return d.cannot(f, fmt.Sprintf("change it to %s by hand", strings.Join(words, " ")))
}

// replace returns the edits that give an option other values.
func (d *scriptDocument) replace(f *flag, values []string, depth shell.Depth) (edits []shell.Edit, ok bool) {
	s := d.script.shell
	if strings.Contains(f.words[0].Text(), "=") {
		if len(values) != 1 || len(f.words) != 1 {
			return nil, false
		}
		edit, ok := s.Replace(&f.words[0], f.spelled+"="+values[0], shell.AtUse)
		return []shell.Edit{edit}, ok
	}
	if len(values) != len(f.words)-1 {
		return nil, false
	}
	for i, value := range values {
		w := &f.words[1+i]
		if w.Text() == value {
			continue
		}
		edit, ok := s.Replace(w, value, depth)
		if !ok {
			return nil, false
		}
		edits = append(edits, edit)
	}
	return edits, true
}

// try applies edits if they give an option its values, and leave all others as they are. values is nil if the option
// must go. Otherwise it returns false and changes nothing.
func (d *scriptDocument) try(key string, values []string, edits []shell.Edit) bool {
	before, file := d.script, d.script.file
	file.Data = shell.Apply(file.Data, edits...)
	after := readScript(file, d.options)
	if after.diags != nil || before.others(key) != after.others(key) {
		return false
	}
	f := after.find(key)
	if values == nil && len(after.flags) >= len(before.flags) {
		return false
	}
	if values != nil {
		if f == nil {
			return false
		}
		_, inline, hasInline := strings.Cut(f.words[0].Text(), "=")
		var got []string
		if hasInline {
			got = append(got, inline)
		}
		for i := range f.words[1:] {
			got = append(got, f.words[1+i].Text())
		}
		if !slices.Equal(got, values) {
			return false
		}
	}
	d.script = after
	return true
}

// others returns everything that a script says, except one option, as a text.
func (s *script) others(key string) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.config, s.devices, s.perNode, len(s.shell.Commands))
	for _, f := range s.flags {
		if f.key != key {
			fmt.Fprintln(&b, f.spelled, f.shown)
		}
	}
	return b.String()
}

// Remove deletes an option, wherever the script has it.
func (d *scriptDocument) Remove(key string) error {
	for {
		f := d.script.find(key)
		if f == nil {
			return nil
		}
		edits, ok := d.script.shell.Remove(f.words)
		if !ok || !d.try(key, nil, edits) {
			return d.cannot(f, "remove it by hand")
		}
	}
}

// cannot is the error of an option that cannot be changed.
func (d *scriptDocument) cannot(f *flag, byHand string) error {
	return ir.Diags{{Pos: f.pos, Code: tree.CannotEdit,
		Msg: fmt.Sprintf("%s %s replaces the key of the TOML file and cannot be changed in place: %s", f.spelled,
			f.shown, byHand)}}
}
