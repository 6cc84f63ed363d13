package costmodel

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decideNothing are figures that no plan depends on, so that correcting a price does not change plans. If the objective
// is cost or energy, they scale the costs of all candidates alike.
var decideNothing = []string{"base", "source", "gpu.watts", "node.price_per_hour", "measured.by"}

// Deciding returns the figures that decide a plan, by their dotted names in a cluster file, and the cluster's name.
// Zero values are left out.
func (c *Cluster) Deciding() map[string]string {
	if c.named != nil { // rates measured on this machine are not part of a lock
		return c.named.Deciding()
	}
	out := map[string]string{"name": c.Name}
	decidingRows(out, reflect.ValueOf(*c), "")
	return out
}

func decidingRows(out map[string]string, v reflect.Value, path string) {
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if key != "-" {
			decidingRow(out, v.Field(i), strings.TrimPrefix(path+"."+key, "."))
		}
	}
}

func decidingRow(out map[string]string, v reflect.Value, path string) {
	switch {
	case slices.Contains(decideNothing, path) || v.IsZero():
	case v.Kind() == reflect.Struct:
		decidingRows(out, v, path)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			decidingRow(out, v.Index(i), fmt.Sprintf("%s.%d", path, i))
		}
	case v.Kind() == reflect.Map:
		rates := v.Interface().(map[string]float64)
		for _, key := range slices.Sorted(maps.Keys(rates)) {
			decidingRow(out, reflect.ValueOf(rates[key]), path+"."+key)
		}
	case v.Kind() == reflect.Float64:
		out[path] = strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		out[path] = fmt.Sprint(v)
	}
}
