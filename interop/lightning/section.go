package lightning

import (
	"slices"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// fitSection is the key below which a file has the keys of LightningCLI's subcommand that trains.
const fitSection = "fit"

// otherSections are the keys of LightningCLI's other subcommands.
var otherSections = []string{"validate", "test", "predict"}

// section is the part of a file that has the keys of fit: the whole file, or what stands below fit.
type section struct {
	file   *tree.Doc
	prefix string // of the part's keys in the file: "fit." or ""
}

// sectionOf returns the part of a file that has the keys of fit. A file with trainer at the top level has no
// subcommands.
func sectionOf(doc *tree.Doc) (*section, ir.Diags) {
	isSection := func(key string) bool { n := doc.Root.Get(key); return n != nil && n.Kind == strict.Map }
	other := slices.IndexFunc(otherSections, isSection)
	var diags ir.Diags
	switch {
	case doc.Root.Get("trainer") != nil:
	case isSection(fitSection):
		return &section{doc, fitSection + "."}, nil
	case other >= 0:
		key := otherSections[other]
		diags.Addf(doc.Root.Field(key).Pos, NoConfig, "the file has keys of %s and none of %s, which trains: give the "+
			"file that you give to the subcommand %s", key, fitSection, fitSection)
	}
	return &section{doc, ""}, diags
}

// keys returns the part as a document to read.
func (s *section) keys() *tree.Doc {
	if s.prefix == "" {
		return s.file
	}
	return &tree.Doc{File: s.file.File, Syntax: s.file.Syntax, Root: s.file.Root.Get(fitSection)}
}

// Get returns the text of a key's value and whether the part has the key.
func (s *section) Get(key string) (text string, ok bool) { return s.file.Get(s.prefix + key) }

// Set changes the value of a key of the part.
func (s *section) Set(v interop.Value) error {
	v.Key = s.prefix + v.Key
	return s.file.Set(v)
}

// Remove deletes a key of the part.
func (s *section) Remove(key string) error { return s.file.Remove(s.prefix + key) }

// Bytes returns the changed file.
func (s *section) Bytes() []byte { return s.file.Bytes() }
