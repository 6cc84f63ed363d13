package spec

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decides is the text of what decides the plan, for hashing into the lock: the model in planc's own words and
// the fields of class d, one a line. The cluster is in it by name; its figures are the caller's to add.
func (j *Job) Decides() []byte {
	var b bytes.Buffer
	c := *j.Config
	c.Name, c.at = "", nil
	for i, v := 0, reflect.ValueOf(c); i < v.NumField(); i++ {
		if f := v.Type().Field(i); f.IsExported() && f.Name != "Name" {
			fmt.Fprintf(&b, "model.%s %v\n", f.Name, v.Field(i))
		}
	}
	rows := map[string]string{}
	deciding(rows, reflect.ValueOf(*j), "", "")
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "%s %s\n", k, rows[k])
	}
	return b.Bytes()
}

// deciding collects the scalars of class d; a class holds for all that is inside.
func deciding(rows map[string]string, v reflect.Value, path, class string) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		key, c := f.Tag.Get("yaml"), f.Tag.Get("class")
		if c == "" {
			c = class
		}
		switch p := strings.TrimPrefix(path+"."+key, "."); {
		case key == "model" || (key == "-" && f.Name != "Count") || key == "" || key == "global_batch_tokens":
		case f.Type.Kind() == reflect.Struct:
			if vals := v.Field(i).FieldByName("Values"); vals.IsValid() {
				if vals.Len() > 0 && c == "d" {
					rows[p] = fmt.Sprint(vals)
				}
				continue
			}
			deciding(rows, v.Field(i), p, c)
		case c == "d" && key == "-":
			rows[path+".count"] = fmt.Sprint(v.Field(i))
		case c == "d":
			rows[p] = fmt.Sprint(v.Field(i))
		}
	}
}
