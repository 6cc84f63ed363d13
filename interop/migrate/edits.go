package migrate

import (
	"maps"
	"reflect"
	"slices"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// changed returns the values of a plan that another plan does not have, and removes the keys that it alone has. Keys
// that had no effect get their values, because a file may have others for them. A variable of the environment stays: it
// has no effect on a plan that does not need it, unless that plan refuses it.
func changed(from, to []interop.Value) (out []interop.Value) {
	find := func(all []interop.Value, v interop.Value) int {
		return slices.IndexFunc(all, func(w interop.Value) bool { return w.Key == v.Key && w.Env == v.Env })
	}
	for _, v := range to {
		i := find(from, v)
		if v.IsUnused {
			continue
		}
		if i < 0 || from[i].Text != v.Text || from[i].IsAbsent != v.IsAbsent || from[i].IsUnused {
			out = append(out, v)
		}
	}
	for _, v := range from {
		if !v.IsAbsent && !v.Env && find(to, v) < 0 {
			v.IsAbsent = true
			out = append(out, v)
		}
	}
	return out
}

// change is what differs between two plans, as far as keys of a file must be set that say the same for both.
type change struct {
	isOtherBatch bool
	// addsReplicas says that one replica becomes several, for which keys of ZeRO that had no effect have one.
	addsReplicas bool
	// plan are the keys of the plan that differ.
	plan map[string]bool
}

// newChange returns the change from one plan to another.
func newChange(from, to ir.Plan) change {
	c := change{from.MicroBatch != to.MicroBatch || from.MicroBatches != to.MicroBatches,
		from.Replicas() == 1 && to.Replicas() > 1, map[string]bool{}}
	old := from.JSON()
	for key, value := range to.JSON() {
		c.plan[key] = !reflect.DeepEqual(value, old[key])
	}
	return c
}

// edits returns the values to set in a document, whose values get returns, for another plan. Those are the values that
// change, and keys of the file that say the same parts of the plan in another way and must go:
// --num-layers-per-virtual-pipeline-stage, if the number of virtual stages changes. If the micro-batches change, keys
// of the batch that the file lacks are set too: the trainer derives their values from keys that change.
func (c change) edits(get func(key string) (text string, isSet bool), from, to []interop.Value) []interop.Value {
	out := changed(from, to)
	isChanged := maps.Clone(c.plan)
	if c.addsReplicas {
		isChanged["zero"], isChanged["zero_group"] = true, true
	}
	for _, v := range out {
		for _, key := range v.Plan {
			isChanged[key] = true
		}
	}
	var removed []interop.Value
	for _, v := range to {
		says := slices.ContainsFunc(v.Plan, func(key string) bool { return isChanged[key] })
		text, isSet := get(v.Key)
		switch {
		case v.Env:
		case v.IsAbsent && says && !isLike(v, text, isSet):
			removed = append(removed, v)
		case v.IsAbsent || has(out, v.Key):
		case v.IsNeeded && text != v.Text,
			!isSet && c.isOtherBatch && slices.Contains(v.Plan, "micro_batches"),
			isSet && c.addsReplicas && text != v.Text && slices.Contains(v.Plan, "zero"):
			out = append(out, v)
		}
	}
	out = slices.DeleteFunc(out, func(v interop.Value) bool { return v.IsAbsent && has(removed, v.Key) })
	return append(removed, out...)
}

// has reports whether values have a key.
func has(all []interop.Value, key string) bool {
	return slices.ContainsFunc(all, func(v interop.Value) bool { return v.Key == key })
}

// set makes a value part of a document. A key that must be absent keeps its line, and with it the line's comment, if a
// default says the same.
func set(doc interop.Document, v interop.Value) error {
	text, isSet := doc.Get(v.Key)
	switch {
	case !v.IsAbsent:
		return doc.Set(v)
	case isLike(v, text, isSet):
		return nil
	case v.Default != "":
		v.IsAbsent, v.Text = false, v.Default
		return doc.Set(v)
	}
	return doc.Remove(v.Key)
}

// isLike reports whether a document, which has a text for the key of a value, or none, says the value.
func isLike(v interop.Value, text string, isSet bool) bool {
	if v.IsAbsent {
		return !isSet || v.IsUnused || v.Default != "" && text == v.Default
	}
	return isSet && text == v.Text
}

// finish removes from a document what the trainer no longer accepts after edits.
func finish(doc interop.Document) error {
	if f, ok := doc.(interop.Finisher); ok {
		return f.Finish()
	}
	return nil
}
