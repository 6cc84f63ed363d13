package megatron

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/shell"
)

// Files that a script sources: they are given with the script, or stand in its folder.

// mainFile returns the script among some files: the first that is neither a model nor sourced by another one, and has
// options of Megatron-LM if one has.
func (d *dialect) mainFile(files []interop.File, o interop.Options) interop.File {
	var scripts []interop.File
	for _, f := range files {
		if !keytable.IsModel(f) && !isYAML(f) {
			scripts = append(scripts, f)
		}
	}
	if len(scripts) == 0 {
		return files[max(0, slices.IndexFunc(files, isYAML))]
	}
	if len(scripts) == 1 {
		return scripts[0]
	}
	isSourced, hasOptions := map[string]bool{}, map[string]bool{}
	for _, f := range scripts {
		src := d.read(f, opener(f, scripts, o), o)
		hasOptions[f.Name] = len(src.settings.arguments) > 0
		for _, name := range src.sourced() {
			if name != f.Name {
				isSourced[name] = true
			}
		}
	}
	i := slices.IndexFunc(scripts, func(f interop.File) bool { return !isSourced[f.Name] && hasOptions[f.Name] })
	if i < 0 {
		i = slices.IndexFunc(scripts, func(f interop.File) bool { return !isSourced[f.Name] })
	}
	return scripts[max(0, i)]
}

// opener returns how the files are opened that a script sources. A file that is given has precedence over one in the
// script's folder. Files of other folders are read only if the script names them by a relative path.
func opener(main interop.File, given []interop.File, o interop.Options) shell.Open {
	type opened struct {
		name string
		data []byte
		ok   bool
	}
	seen := map[string]opened{}
	find := func(name string) opened {
		shown := path.Join(path.Dir(main.Name), name)
		for _, isSame := range []func(interop.File) bool{
			func(f interop.File) bool {
				return path.Clean(f.Name) == shown || path.Clean(f.Name) == path.Clean(name)
			},
			func(f interop.File) bool { return path.Base(f.Name) == path.Base(name) },
		} {
			i := slices.IndexFunc(given, isSame)
			if i >= 0 {
				return opened{given[i].Name, given[i].Data, true}
			}
		}
		if o.Read == nil || path.IsAbs(name) || strings.HasPrefix(name, "~") || name == "-" {
			return opened{}
		}
		data, err := o.Read(shown)
		return opened{shown, data, err == nil}
	}
	return func(name string) (string, []byte, bool) {
		f, ok := seen[name]
		if !ok {
			f = find(name)
			seen[name] = f
		}
		return f.name, f.data, f.ok
	}
}

// sourced returns the names of the files that the script has read, in their order.
func (src *source) sourced() (names []string) {
	if src.script == nil {
		return nil
	}
	return slices.Clone(src.script.Files()[1:])
}

// noteSources accounts for the files that the script sources.
func (src *source) noteSources(script string) {
	for i := range src.script.Sources {
		c := &src.script.Sources[i]
		key := interop.Key{Pos: src.script.At(c.At.Start), Name: "source", Value: src.script.Shown(&c.Path)}
		switch {
		case c.File != "":
			key.Use, key.As = interop.Taken, []string{c.File}
		case c.Wanted == "":
			key.Use, key.Note = interop.Unsupported, "planc does not know which file this is"
			if why := c.Path.Unknown(); why != nil {
				_, key.Note = src.script.Explain(why)
			}
		default:
			key.Use = interop.Unsupported
			key.Note = fmt.Sprintf("the file is not given, and it may set variables and options: give %s too, after %s",
				c.Wanted, script)
		}
		src.launch = append(src.launch, key)
	}
}
