package strict

import (
	"path/filepath"
	"strings"

	"github.com/planc-dev/planc/ir"
	yaml "go.yaml.in/yaml/v4"
)

const maxBytes = 1 << 20

// Doc is the tree of a file and, after Decode, the position of each field.
type Doc struct {
	File string
	Root *Node
	at   map[string]ir.Pos
}

// New returns a document without a file, for jobs that consist of flags.
func New() *Doc { return &Doc{Root: &Node{Kind: Map}} }

// Parse reads one YAML document (JSON is valid YAML). It never returns a nil Doc; after an error the Doc contains what
// could be read.
func Parse(file string, data []byte) (*Doc, ir.Diags) {
	d, diags := New(), ir.Diags{}
	d.File = file
	d.Root.Pos = ir.Pos{File: file, Line: 1, Column: 1}
	if len(data) > maxBytes {
		diags.Addf(d.Root.Pos, TooLarge, "the file has %d bytes; it must have at most %d", len(data), maxBytes)
		return d, diags
	}
	if diag, bad := encoding(file, data); bad {
		return d, append(diags, diag)
	}
	if diag, bad := notJSON(file, data); bad {
		return d, append(diags, diag)
	}
	var y yaml.Node
	if err := yaml.Load(data, &y); err != nil {
		diags = append(diags, LoadDiag(file, string(data), err))
		return d, diags
	}
	if len(y.Content) == 0 {
		diags.Addf(d.Root.Pos, Empty, "the file is empty")
		return d, diags
	}
	b := builder{file: file, dir: filepath.Dir(file), diags: &diags}
	d.Root = b.node(y.Content[0], 0)
	if d.Root.Kind == Null && len(diags) == 0 {
		diags.Addf(d.Root.Pos, Empty, "the file is empty")
	}
	return d, diags
}

// Pos returns the position of a field, given by its dotted path, or of the closest enclosing mapping if the field is
// absent.
func (d *Doc) Pos(path string) ir.Pos {
	for {
		if p, ok := d.at[path]; ok {
			return p
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return d.Root.Pos
		}
		path = path[:i]
	}
}

// Has reports whether the document contains a field, given by its dotted path.
func (d *Doc) Has(path string) bool {
	_, ok := d.at[path]
	return ok
}
