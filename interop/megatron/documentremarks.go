package megatron

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
)

// remark says that an edit leaves a variable as it was, because others use it too.
type remark struct {
	edit      int // index of the edit
	variable  string
	text      string   // of the variable
	users     []string // names of others
	sentence  string
	canFollow string // what to set instead if the others should follow
}

// remark notes that an edit of an argument leaves a variable as it was, because others use it.
func (d *document) remark(a *argument, v interop.Value, users []string) {
	if len(users) == 0 || len(a.words) != 1 {
		return
	}
	use := "use"
	if len(users) == 1 {
		use = "uses"
	}
	name := a.words[0].Variable()
	if name == "" {
		return
	}
	d.remarks = append(d.remarks, remark{edit: len(d.edits) - 1, variable: name, text: a.text(), users: users,
		sentence: fmt.Sprintf("%s: %s stays %s, because %s %s it too: the edit changes %s alone", d.file.Name, name,
			a.text(), interop.Joined(users), use, v.Key),
		canFollow: fmt.Sprintf("Set %s=%s instead if the others should follow", name, v.Text)})
}

// Remarks returns what the edits leave as it was: uses of variables by other arguments. It leaves out variables that
// later edits change. It also returns why options were removed that are no part of the plan.
func (d *document) Remarks() (out []string) {
	out = slices.Clone(d.left)
	for i := range d.remarks {
		r := &d.remarks[i]
		if w, ok := d.src.script.Variable(r.variable); ok && w.Text() != r.text {
			continue
		}
		sentence := r.sentence
		if d.othersCanFollow(r) {
			sentence += ". " + r.canFollow
		}
		out = append(out, sentence)
	}
	return out
}

// othersCanFollow reports whether an edit of the variable itself, which changes the others too, leads to the same job.
// The number of devices and the environment are not the plan's to change.
func (d *document) othersCanFollow(r *remark) bool {
	if slices.ContainsFunc(r.users, func(name string) bool { return !strings.HasPrefix(name, "-") }) {
		return false
	}
	other := &document{dialect: d.dialect, file: d.before[0], open: d.open, options: d.options, before: d.before}
	other.src = d.dialect.read(other.file, other.open, other.options)
	for i, v := range d.edits {
		if i != r.edit {
			if other.Set(v) != nil {
				return false
			}
			continue
		}
		if !other.replaceDeepest(v) {
			return false
		}
	}
	mine, ok := d.job()
	others, isJob := other.job()
	return ok && isJob && maps.Equal(mine, others)
}

// replaceDeepest gives an argument another value in the innermost variable, whatever else that changes.
func (d *document) replaceDeepest(v interop.Value) bool {
	a := d.find(v.Key)
	if a == nil {
		return false
	}
	for _, depth := range shell.Depths {
		if edits, ok := d.replace(a, v.Text, depth); ok {
			d.change(edits...)
			return true
		}
	}
	return false
}

// job returns the fields of the script's job as it is now.
func (d *document) job() (fields map[string]string, ok bool) {
	files := append([]interop.File{d.file}, d.before[1:]...)
	im, err := d.dialect.read(d.file, d.open, d.options).importAs(d.dialect, files, d.options)
	if err != nil {
		return nil, false
	}
	fields = map[string]string{}
	for _, f := range im.Fields {
		fields[f.Path] = f.Value
	}
	return fields, true
}
