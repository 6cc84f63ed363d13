package formats

import (
	"bytes"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// holding returns a format of files that contain a word, and that are certain if they begin with it.
func holding(name, word string) *interop.Format {
	return &interop.Format{Name: name, Import: func([]interop.File, interop.Options) (*interop.Import, error) {
		return nil, nil
	},
		Recognize: func(f interop.File) interop.Confidence {
			switch {
			case bytes.HasPrefix(f.Data, []byte(word)):
				return interop.Certain
			case bytes.Contains(f.Data, []byte(word)):
				return interop.Possible
			}
			return interop.No
		}}
}

func TestTheSurestFormatIsRecognized(t *testing.T) {
	all := []*interop.Format{{Name: "out"}, holding("a", "aa"), holding("b", "bb")}
	for _, c := range []struct {
		files []string
		want  string
		sure  interop.Confidence
	}{
		{[]string{"xx"}, "", interop.No},
		{[]string{"bb aa"}, "b", interop.Certain},
		{[]string{"x aa bb"}, "a", interop.Possible},
		{[]string{"x aa", "bb"}, "b", interop.Certain},
		{nil, "", interop.No},
	} {
		var files []interop.File
		for _, text := range c.files {
			files = append(files, interop.File{Name: "f", Data: []byte(text)})
		}
		got, sure := recognize(all, files)
		name := ""
		if got != nil {
			name = got.Name
		}
		if name != c.want || sure != c.sure {
			t.Errorf("%q: %q, %d; want %q, %d", c.files, name, sure, c.want, c.sure)
		}
	}
}

func TestFindReturnsFormatsByTheirNames(t *testing.T) {
	all := []*interop.Format{{Name: "a"}, {Name: "b"}}
	if find(all, "b") != all[1] || find(all, "c") != nil {
		t.Error("find does not return the format of a name")
	}
}

// Users type the names, and a file of each format has an extension.
func TestFormatsAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All {
		isNamed := f.Name != "" && !seen[f.Name] && f.Title != "" && f.Tool != "" && f.Ext != ""
		if !isNamed || f.Write == nil && f.Import == nil {
			t.Errorf("%q: a format needs a name of its own, a title, a tool, an extension, and Write or Import", f.Name)
		}
		if (f.Import == nil) != (f.Recognize == nil) {
			t.Errorf("%s: a format that is read is recognized too", f.Name)
		}
		seen[f.Name] = true
	}
}
