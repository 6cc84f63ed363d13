package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Unmarshaler is a type with a form of its own. It records its mistakes in the Context.
type Unmarshaler interface {
	UnmarshalNode(c *Context, n *Node, path string)
}

// Context is what one Decode shares.
type Context struct {
	diags *ir.Diags
	at    map[string]ir.Pos
	tag   reflect.StructTag // of the field being decoded
	all   reflect.Type      // of the whole document

	unknowns    int    // keys that are unknown, so far
	untold      int    // of these, those that are counted only,
	lastUnknown ir.Pos // and the last of them
}

// Addf records a mistake.
func (c *Context) Addf(p ir.Pos, code ir.Code, format string, args ...any) {
	c.diags.Addf(p, code, format, args...)
}

// Pos is where the field of a dotted path that was already met begins.
func (c *Context) Pos(path string) ir.Pos { return c.at[path] }

// Fixf records a mistake and the name or value that would be right.
func (c *Context) Fixf(p ir.Pos, code ir.Code, fix, format string, args ...any) {
	c.fix(p, code, fix, format, args...)
}

// Decode fills what dst points to from n, for Unmarshalers whose parts have the usual forms. The tags of the
// field that is being decoded apply to scalars.
func (c *Context) Decode(n *Node, path string, dst any) {
	c.value(n, reflect.ValueOf(dst).Elem(), path)
}

// Struct is Decode for an Unmarshaler whose mapping form has the usual rules: it ignores dst's UnmarshalNode.
func (c *Context) Struct(n *Node, path string, dst any) {
	c.mapping(n, reflect.ValueOf(dst).Elem(), path)
}

// Decode fills the struct that dst points to; fields that are not in the document keep their values. It
// returns all mistakes.
func (d *Doc) Decode(dst any) ir.Diags {
	var diags ir.Diags
	c := &Context{diags: &diags, at: map[string]ir.Pos{}, all: reflect.TypeOf(dst).Elem()}
	c.value(d.Root, reflect.ValueOf(dst).Elem(), "")
	c.moreUnknown()
	d.at = c.at
	return diags
}

func (c *Context) value(n *Node, v reflect.Value, path string) {
	if n.Kind == Null {
		return
	}
	if _, known := c.at[path]; !known {
		c.at[path] = n.Pos
	}
	if u, ok := v.Addr().Interface().(Unmarshaler); ok {
		u.UnmarshalNode(c, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		c.mapping(n, v, path)
	case reflect.Map:
		c.table(n, v, path)
	case reflect.Slice, reflect.Array:
		c.list(n, v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		c.value(n, v.Elem(), path)
	default:
		c.scalar(n, v, path)
	}
}

func (c *Context) mapping(n *Node, v reflect.Value, path string) {
	if n.Kind != Map {
		fix := ""
		if n.Kind == String && fieldOf(v.Type(), "kind") != nil {
			fix = "{kind: " + n.Text + "}"
		}
		c.fix(n.Pos, WrongType, fix, "%s is %s; a mapping is wanted", orFile(path), n.describe())
		return
	}
	outer := c.tag
	defer func() { c.tag = outer }()
	for _, f := range n.Fields {
		i := fieldOf(v.Type(), f.Key)
		if i == nil {
			c.unknown(f, path, Keys(v.Type()))
			continue
		}
		sub := join(path, f.Key)
		if k := f.Value.Kind; k == Map || k == List {
			c.at[sub] = f.Pos
			if f.Value.around != nil {
				c.at[sub] = *f.Value.around
			}
		}
		c.tag = v.Type().FieldByIndex(i).Tag
		if _, zero := c.tag.Lookup("null"); zero && f.Value.Kind == Null {
			v.FieldByIndex(i).SetZero()
		}
		c.value(f.Value, v.FieldByIndex(i), sub)
	}
}

// table decodes a mapping with free keys, or those of the tag keys.
func (c *Context) table(n *Node, v reflect.Value, path string) {
	if n.Kind != Map {
		c.Addf(n.Pos, WrongType, "%s is %s; a mapping is wanted", path, n.describe())
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	allowed := split(c.tag.Get("keys"))
	for _, f := range n.Fields {
		if len(allowed) > 0 && !slices.Contains(allowed, f.Key) {
			c.unknown(f, path, allowed)
			continue
		}
		if f.Value.Kind == Null {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		c.value(f.Value, e, join(path, f.Key))
		v.SetMapIndex(reflect.ValueOf(f.Key), e)
	}
}

func (c *Context) list(n *Node, v reflect.Value, path string) {
	if n.Kind != List {
		c.Addf(n.Pos, WrongType, "%s is %s; a list is wanted", path, n.describe())
		return
	}
	if v.Kind() == reflect.Array && len(n.Items) != v.Len() {
		c.Addf(n.Pos, WrongType, "%s is a list of %d; %d values are wanted", path, len(n.Items), v.Len())
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
	}
	for i, item := range n.Items {
		sub := fmt.Sprintf("%s[%d]", path, i)
		if item.Kind == Null {
			c.Addf(item.Pos, WrongType, "%s is null", sub)
			continue
		}
		c.value(item, v.Index(i), sub)
	}
}

func (c *Context) scalar(n *Node, v reflect.Value, path string) {
	ok := false
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		var x int64
		x, ok = c.integer(n, path)
		if ok {
			v.SetInt(x)
		}
	case reflect.Uint64:
		var x int64
		x, ok = c.integer(n, path)
		if ok && x < 0 {
			c.Addf(n.Pos, OutOfRange, "%s is %d; at least 0 is wanted", path, x)
			return
		}
		v.SetUint(uint64(x))
	case reflect.Float64:
		var x float64
		x, ok = c.number(n, path)
		if ok {
			v.SetFloat(x)
		}
	case reflect.Bool:
		var x bool
		x, ok = c.boolean(n, path)
		if ok {
			v.SetBool(x)
		}
	case reflect.String:
		var x string
		x, ok = c.text(n, path)
		if ok {
			v.SetString(x)
		}
	default:
		panic(fmt.Sprintf("strict: %s has type %v, which has no form", path, v.Type()))
	}
	if ok {
		c.check(n, v, path)
	}
}

// Keys are the keys of a struct, in its order; those of an embedded struct are its own.
func Keys(t reflect.Type) []string {
	var ks []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch k := f.Tag.Get("yaml"); {
		case f.Anonymous && k == "":
			ks = append(ks, Keys(f.Type)...)
		case k != "" && k != "-":
			ks = append(ks, k)
		}
	}
	return ks
}

// fieldOf is the index of the field with a key, as reflect's FieldByIndex takes it; nil if there is none.
func fieldOf(t reflect.Type, key string) []int {
	if key == "" || key == "-" {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch k := f.Tag.Get("yaml"); {
		case f.Anonymous && k == "":
			if inner := fieldOf(f.Type, key); inner != nil {
				return append([]int{i}, inner...)
			}
		case k == key:
			return []int{i}
		}
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
