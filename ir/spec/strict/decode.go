package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Unmarshaler is a type that decodes itself. It records errors in the Context.
type Unmarshaler interface {
	UnmarshalNode(c *Context, n *Node, path string)
}

// Context is the state of one Decode.
type Context struct {
	diags *ir.Diags
	at    map[string]ir.Pos
	tag   reflect.StructTag // of the field being decoded
	all   reflect.Type      // type of the whole document

	unknowns    int    // unknown keys so far
	unlisted    int    // unknown keys that are only counted
	lastUnknown ir.Pos // position of the last of them
}

// Addf records an input error.
func (c *Context) Addf(p ir.Pos, code ir.Code, format string, args ...any) {
	c.diags.Addf(p, code, format, args...)
}

// Pos returns the position of a field that was decoded already, given by its dotted path.
func (c *Context) Pos(path string) ir.Pos { return c.at[path] }

// Fixf records an input error, and the name or value that would be correct.
func (c *Context) Fixf(p ir.Pos, code ir.Code, fix, format string, args ...any) {
	c.fix(p, code, fix, format, args...)
}

// Decode fills what dst points to from n, for the parts of an Unmarshaler that have a standard form. Scalars are
// checked against the tags of the field that is being decoded.
func (c *Context) Decode(n *Node, path string, dst any) {
	c.value(n, reflect.ValueOf(dst).Elem(), path)
}

// Struct decodes the mapping form of an Unmarshaler by the standard rules, without calling dst's UnmarshalNode.
func (c *Context) Struct(n *Node, path string, dst any) {
	c.mapping(n, reflect.ValueOf(dst).Elem(), path)
}

// Decode fills the struct that dst points to. Fields that the document lacks keep their values. It returns all input
// errors.
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
		c.fix(n.Pos, WrongType, fix, "%s is %s; it must be a mapping", orFile(path), n.describe())
		return
	}
	outer := c.tag
	defer func() { c.tag = outer }()
	c.renameAliases(n, v.Type(), path)
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

// renameAliases replaces aliases in a mapping by the keys of t. If both names of a key are given, a flag replaces the
// value of the file and a later flag an earlier one; two values in a file are an error.
func (c *Context) renameAliases(n *Node, t reflect.Type, path string) {
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key, alias := tag.Get("yaml"), tag.Get("alias")
		a := slices.IndexFunc(n.Fields, func(f Field) bool { return alias != "" && f.Key == alias })
		if a < 0 {
			continue
		}
		k := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Key == key })
		n.Fields[a].Key = key
		if k < 0 {
			continue
		}
		first, last := min(a, k), max(a, k)
		if !IsFlag(n.Fields[last].Pos) {
			c.Addf(n.Fields[a].Pos, DuplicateKey, "%s is another name of %s, which is given too: remove one of them",
				join(path, alias), join(path, key))
		}
		n.Fields = slices.Delete(n.Fields, first, first+1)
	}
}

// table decodes a mapping with arbitrary keys, or with the keys of the tag keys.
func (c *Context) table(n *Node, v reflect.Value, path string) {
	if n.Kind != Map {
		c.Addf(n.Pos, WrongType, "%s is %s; it must be a mapping", path, n.describe())
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
		c.Addf(n.Pos, WrongType, "%s is %s; it must be a list", path, n.describe())
		return
	}
	if v.Kind() == reflect.Array && len(n.Items) != v.Len() {
		c.Addf(n.Pos, WrongType, "%s is a list of %d; it must have %d values", path, len(n.Items), v.Len())
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
			c.Addf(n.Pos, OutOfRange, "%s is %d; it must be at least 0", path, x)
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
		panic(fmt.Sprintf("strict: %s has type %v, which cannot be decoded", path, v.Type()))
	}
	if ok {
		c.check(n, v, path)
	}
}

// Keys returns the keys of a struct in its order, including those of embedded structs.
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

// fieldOf returns the index of the field with a key, for reflect's FieldByIndex; nil if there is none.
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
