package codegen

import (
	"go/token"
	"strconv"
	"strings"
	"unicode"

	"github.com/planc-dev/planc/ir"
)

// reserved are the identifiers that every generated function may use for itself.
var reserved = []string{"r", "b", "kern", "rt", "cpu", "gpu", "num", "float", "program",
	"i", "i0", "i1", "i2", "i3", "i4", "j", "copy", "len", "min", "max", "float32", "float64", "true", "false", "nil",
	"int", "string", "append", "clear", "any", "new", "make", "init", "main"}

// namer gives the values of one function Go names.
type namer struct {
	taken map[string]bool
	names map[*ir.Value]string
}

func newNamer() *namer {
	n := &namer{taken: map[string]bool{}, names: map[*ir.Value]string{}}
	for _, r := range reserved {
		n.taken[r] = true
	}
	return n
}

// name is v's Go name.
func (n *namer) name(v *ir.Value) string {
	if s, ok := n.names[v]; ok {
		return s
	}
	s := n.fresh(camel(v.Name))
	n.names[v] = s
	return s
}

// fresh makes s unique in the function.
func (n *namer) fresh(s string) string {
	base := s
	for i := 2; n.taken[s] || token.IsKeyword(s); i++ {
		s = base + "_" + strconv.Itoa(i)
	}
	n.taken[s] = true
	return s
}

// camel turns d.ln1_2.rs into dLn1_2Rs: a dot or an underscore before a letter begins a word.
func camel(s string) string {
	var b strings.Builder
	upper := false
	for i, c := range s {
		switch {
		case c == '.' || c == '(' || c == ')':
			upper = true
		case c == '_' && i+1 < len(s) && unicode.IsLetter(rune(s[i+1])):
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(c))
			upper = false
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// title begins a name with a capital.
func title(s string) string {
	s = camel(s)
	return strings.ToUpper(s[:1]) + s[1:]
}
