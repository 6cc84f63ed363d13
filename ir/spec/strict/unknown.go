package strict

import (
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// unknown records a key that its mapping does not have: where else the document has it, or the nearest of the mapping's
// own, or all of those.
func (c *Context) unknown(f Field, path string, keys []string) {
	fix, list := "", ""
	switch elsewhere := Places(c.all, f.Key); {
	case len(elsewhere) == 1 && elsewhere[0] == f.Key:
		list = "; it stands at the top level"
	case len(elsewhere) == 1:
		fix = elsewhere[0]
	case c.otherKey(path, f) != "":
		fix = c.otherKey(path, f)
	case ir.Nearest(f.Key, keys) != "":
		fix = ir.Nearest(f.Key, keys)
	case len(elsewhere) > 1:
		list = "; there are " + strings.Join(elsewhere, ", ")
	default:
		list = "; keys are " + strings.Join(keys, ", ")
	}
	in := ""
	if path != "" {
		in = " in " + path
	}
	c.unknowns++
	if c.unknowns > mostUnknown && fix == "" {
		c.untold++
		c.lastUnknown = f.Pos
		return
	}
	c.fix(f.Pos, UnknownKey, fix, "no key %s%s%s", clip(f.Key), in, list)
}

// mostUnknown is how many unknown keys are told apart, beside those that look like a key: a file with more is most
// likely another kind of file.
const mostUnknown = 12

// moreUnknown counts the others.
func (c *Context) moreUnknown() {
	if c.untold > 0 {
		c.Addf(c.lastUnknown, UnknownKey, "more unknown keys: %d, of which this is the last", c.untold)
	}
}

// Places are the dotted paths at which a document of type t has a key, those of lists and tables left out. A type that
// holds itself is not entered again.
func Places(t reflect.Type, key string) []string { return placesOf(t, key, "", nil) }

// placesOf is Places below a path; within are the types that the path goes through.
func placesOf(t reflect.Type, key, path string, within []reflect.Type) (places []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(within, t) {
		return nil
	}
	within = append(slices.Clip(within), t)
	for _, k := range Keys(t) {
		if k == key {
			places = append(places, join(path, k))
		}
		places = append(places, placesOf(t.FieldByIndex(fieldOf(t, k)).Type, key, join(path, k), within)...)
	}
	return places
}
