package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Row is a field of the job and its value as text.
type Row struct{ Path, Value string }

// Decides returns the rows of Deciding as text, one per line. It names the cluster; the caller adds the cluster's
// figures.
func (j *Job) Decides() []byte {
	var b bytes.Buffer
	for _, r := range j.Deciding() {
		fmt.Fprintf(&b, "%s %s\n", r.Path, r.Value)
	}
	return b.Bytes()
}

// Deciding returns the fields that decide the plan, sorted by path: those of class d, and the model in planc's terms.
// It leaves out zero values, so that a field that a later planc adds does not change the text of a job without it. A
// pin of 0 or false is kept, because the job sets it. Dropout and names decide nothing.
func (j *Job) Deciding() []Row {
	rows := rowsOf(nil, reflect.ValueOf(*j), "", "", func(class string) bool { return class == "d" })
	rows = slices.DeleteFunc(rows, func(r Row) bool {
		zero := r.Value == "0" || r.Value == "false"
		return r.Value == "" || zero && !strings.HasPrefix(r.Path, "plan.")
	})
	if o := &j.Train.Optimizer; o.Kind == "sgd" { // only whether momentum is 0 decides: 0 needs no memory
		value := "0"
		if o.Momentum > 0 {
			value = "above 0"
		}
		rows = append(rows, Row{"train.optimizer.momentum", value})
	}
	return sortRows(append(rows, j.Config.rows()...))
}

// Rows returns all fields with their values, including defaults, sorted by path.
func (j *Job) Rows() []Row {
	rows := rowsOf(nil, reflect.ValueOf(*j), "", "", func(string) bool { return true })
	if d := j.Train.Dropout; d != nil {
		rows = append(rows, Row{"train.dropout", fmt.Sprint(*d)})
	}
	return sortRows(append(rows, j.Config.rows()...))
}

func sortRows(rows []Row) []Row {
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Path, b.Path) })
	return rows
}

// rows returns the model's fields without those of train.experts.
func (c *Config) rows() (out []Row) {
	for i, v := 0, reflect.ValueOf(*c); i < v.NumField(); i++ {
		f := v.Type().Field(i)
		if !f.IsExported() || f.Name == "Name" || strings.HasPrefix(f.Name, "Drop") || f.Name == "Routing" ||
			f.Name == "PaddingRow" || v.Field(i).IsZero() || c.follows(f.Name) {
			continue
		}
		path := "model." + snake(f.Name)
		if r, ok := v.Field(i).Interface().(RopeScaling); ok {
			out = append(out, Row{path, r.Text()})
			if len(r.Long) > 0 {
				out = append(out, Row{path + ".long", list(reflect.ValueOf(r.Long))})
			}
			continue
		}
		out = append(out, Row{path, fmt.Sprint(v.Field(i))})
	}
	return out
}

// follows reports whether a field has the value that follows from other fields.
func (c *Config) follows(field string) bool {
	switch field {
	case "KVHeads":
		return c.KVHeads == c.Heads
	case "HeadDim":
		return c.HeadDim*c.Heads == c.Hidden
	case "RotaryDim":
		return c.RotaryDim == c.HeadDim
	case "QKVBias":
		return c.AttentionBias
	case "EmbedScale":
		return c.EmbedScale == 1
	case "QueryScale":
		return c.QueryScale == 1/math.Sqrt(float64(c.HeadDim))
	}
	return false
}

// snake converts a Go name to the spelling of keys: KVHeads to kv_heads.
func snake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		starts := i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// rowsOf appends the scalar fields with a class that wanted accepts. A struct's class applies to its fields.
func rowsOf(rows []Row, v reflect.Value, path, class string, wanted func(string) bool) []Row {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, c := f.Tag.Get("yaml"), cmp.Or(f.Tag.Get("class"), class)
		p := strings.TrimPrefix(path+"."+key, ".")
		if key == "-" && f.Name == "Count" {
			key, p = "count", path+".count"
		}
		if key == "" || key == "-" || key == "model" || key == "global_batch_tokens" {
			continue
		}
		switch vals := pinned(v.Field(i)); {
		case vals.IsValid():
			if vals.Len() > 0 && wanted(c) {
				rows = append(rows, Row{p, list(vals)})
			}
		case f.Type == reflect.TypeFor[Valid]():
			if wanted(c) {
				rows = append(rows, Row{p, validText(v.Field(i).Interface().(Valid))})
			}
		case f.Type.Kind() == reflect.Struct:
			rows = rowsOf(rows, v.Field(i), p, c, wanted)
		case wanted(c) && f.Type.Kind() != reflect.Pointer:
			rows = append(rows, Row{p, value(v.Field(i))})
		}
	}
	return rows
}

// validText returns the validation data as text: files, or a fraction of the training data.
func validText(v Valid) string {
	if len(v.Files) > 0 {
		return list(reflect.ValueOf(v.Files))
	}
	return fmt.Sprint(v.Fraction)
}

// pinned returns the values of a Pin, or an invalid Value if v is not a Pin.
func pinned(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName("Values")
}

// value returns a field as text.
func value(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		return list(v)
	case reflect.Struct:
		if s, ok := v.Interface().(Source); ok && s.Weight == 1 {
			return s.Path
		}
	}
	return fmt.Sprint(v)
}

// list returns several values as text.
func list(v reflect.Value) string {
	words := make([]string, v.Len())
	for i := range words {
		words[i] = value(v.Index(i))
	}
	return strings.Join(words, ", ")
}
