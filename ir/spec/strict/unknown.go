package strict

import (
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// unknown reports a key that its mapping does not have. It suggests the path where the document has the key, or the
// nearest key of the mapping, or lists the keys.
func (c *Context) unknown(f Field, path string, keys []string) {
	fix, list := "", ""
	switch elsewhere := Places(c.all, f.Key); {
	case len(elsewhere) == 1 && elsewhere[0] == f.Key:
		list = "; it belongs at the top level"
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
	if c.unknowns > maxUnknown && fix == "" {
		c.unlisted++
		c.lastUnknown = f.Pos
		return
	}
	c.fix(f.Pos, UnknownKey, fix, "no key %s%s%s", clip(f.Key), in, list)
}

// maxUnknown is the number of unknown keys that are reported singly, in addition to those that resemble a key: a file
// with more of them is most likely of another kind.
const maxUnknown = 12

// moreUnknown reports how many further unknown keys there are.
func (c *Context) moreUnknown() {
	if c.unlisted > 0 {
		c.Addf(c.lastUnknown, UnknownKey, "further unknown keys: %d; this is the last one", c.unlisted)
	}
}

// Places returns the dotted paths at which a document of type t has a key, without those in lists and tables. It does
// not enter a type inside itself.
func Places(t reflect.Type, key string) []string { return placesOf(t, key, "", nil) }

// placesOf is Places below a path. within are the types along the path.
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
