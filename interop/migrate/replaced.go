package migrate

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// noteReplaced notes overrides that contradict the files.
func noteReplaced(s *Source, overrides []spec.Override) {
	for _, o := range overrides {
		section, _, _ := strings.Cut(o.Key, ".")
		f, ok := s.Import.Field(o.Key)
		switch {
		case o.Key == "model" && says(s.Import, "model."):
			s.AddNote(ir.Pos{}, "planc uses %s instead of the model in %s", o.Shown, s.Main())
		case (section != "train" && section != "plan") || !ok || !isSaid(&f) || isSame(f.Value, o.Value):
		default:
			s.AddNote(f.Pos, "planc uses %s instead of %s %s (%s)", o.Shown, f.Path, f.Value, f.From)
		}
	}
}

// says reports whether keys of files set fields with a prefix.
func says(im *interop.Import, prefix string) bool {
	for i := range im.Fields {
		if strings.HasPrefix(im.Fields[i].Path, prefix) && isSaid(&im.Fields[i]) {
			return true
		}
	}
	return false
}

// isSaid reports whether a field comes from keys of the files, and not from a default. The global batch may be a
// product of several keys, without a position.
func isSaid(f *interop.Field) bool {
	return f.Pos.Line > 0 || f.Path == "train.global_batch" && strings.Contains(f.From, "·")
}

// isSame reports whether two values of a field are equal.
func isSame(a, b string) bool {
	m, errM := strconv.ParseFloat(a, 64)
	n, errN := strconv.ParseFloat(b, 64)
	return a == b || errM == nil && errN == nil && m == n
}
