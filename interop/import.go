package interop

import (
	"fmt"
	"slices"
	"strings"

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
	// Engine is the value of train.engine under which the file's plan is priced.
	Engine string
	// Devices is the number of devices that the file itself says (its launcher's arguments); 0 if it does not.
	Devices int
	// DevicesPerNode is the devices of a node that the file says; 0 if it does not.
	DevicesPerNode int
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
}

// Note is a remark about the files.
type Note struct {
	Pos  ir.Pos // the zero value if it is about no place in a file
	Text string
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
	n := Note{pos, fmt.Sprintf(format, args...)}
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
		out[i].Pos = ir.Pos{File: im.Files[0]}
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
