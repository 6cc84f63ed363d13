package strict

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// meant returns the value for another tool's word, from the tag meant; "" if the word is not in it.
func (c *Context) meant(word string) string {
	for _, pair := range split(c.tag.Get("meant")) {
		if theirs, ours, _ := strings.Cut(pair, "="); strings.EqualFold(theirs, word) {
			return ours
		}
	}
	return ""
}

// check compares a scalar with its field's tags.
func (c *Context) check(n *Node, v reflect.Value, path string) {
	shown := fmt.Sprint(v.Interface())
	if enum := split(c.tag.Get("enum")); len(enum) > 0 && v.Kind() == reflect.String && !slices.Contains(enum, shown) {
		c.fix(n.Pos, UnknownValue, cmp.Or(c.meant(shown), ir.Nearest(shown, enum)), "%s is %q; use one of %s", path,
			clip(shown), strings.Join(enum, ", "))
		return
	}
	if !c.inRange(n, v, path) {
		return
	}
	now, limited := c.tag.Lookup("now")
	switch {
	case !limited || slices.Contains(split(now), shown):
	// for an item of a list, the value is more informative than the position
	case now == "-" && strings.HasSuffix(path, "]"):
		c.Addf(n.Pos, NotYet, "%s is %s, which is not supported yet", path, clip(shown))
	case now == "-":
		c.Addf(n.Pos, NotYet, "%s is not supported yet", path)
	default:
		fix := ""
		if c.tag.Get("enum") == "" && v.Kind() == reflect.String {
			fix = ir.Nearest(shown, split(now))
		}
		c.fix(n.Pos, NotYet, fix, "%s %s is not supported yet; use %s", path, clip(shown),
			strings.ReplaceAll(now, ",", ", "))
	}
}

// ranges are the tags that bound a number.
var ranges = []struct {
	tag, words string
	ok         func(x, bound float64) bool
}{
	{"min", "at least", func(x, b float64) bool { return x >= b }},
	{"max", "at most", func(x, b float64) bool { return x <= b }},
	{"over", "more than", func(x, b float64) bool { return x > b }},
	{"under", "less than", func(x, b float64) bool { return x < b }},
}

func (c *Context) inRange(n *Node, v reflect.Value, path string) bool {
	var x float64
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanUint():
		x = float64(v.Uint())
	case v.CanFloat():
		x = v.Float()
	default:
		return true
	}
	for _, r := range ranges {
		text := c.tag.Get(r.tag)
		if text == "" {
			continue
		}
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(fmt.Sprintf("strict: %s: tag %s:%q is not a number", path, r.tag, text))
		}
		if !r.ok(x, bound) {
			c.Addf(n.Pos, OutOfRange, "%s is %s; it must be %s %s", path, clip(n.Text), r.words, text)
			return false
		}
	}
	return true
}
