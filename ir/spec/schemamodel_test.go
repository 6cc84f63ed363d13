package spec

import (
	"maps"
	"reflect"
	"slices"
)

// modelSchema is config.json inline, of any family, or a base with overrides. A key that families describe in
// several ways is any of them; what holds if it is absent is then left out.
func modelSchema() schema {
	ways := map[string][]schema{}
	for _, f := range families {
		for key, s := range mappingSchema(f.hf.absent)["properties"].(schema) {
			way := s.(schema)
			if !slices.ContainsFunc(ways[key], func(old schema) bool { return reflect.DeepEqual(old, way) }) {
				ways[key] = append(ways[key], way)
			}
		}
	}
	all := schema{}
	for _, k := range otherTools {
		all[k] = schema{}
	}
	for key, s := range ways {
		all[key] = merged(s)
	}
	all["base"] = schema{"type": "string",
		"description": "catalogue name or path to a config.json; the other keys override it"}
	all["model_type"] = schema{"enum": familyNames()}
	return schema{"type": "object", "properties": all, "additionalProperties": false}
}

// merged are the ways to describe a key as one: their forms without defaults, and the first description.
func merged(ways []schema) schema {
	if len(ways) == 1 {
		return ways[0]
	}
	doc := ways[0]["description"]
	var forms []schema
	for _, w := range ways {
		form := maps.Clone(w)
		delete(form, "default")
		delete(form, "description")
		if !slices.ContainsFunc(forms, func(old schema) bool { return reflect.DeepEqual(old, form) }) {
			forms = append(forms, form)
		}
	}
	out := schema{"anyOf": forms}
	if len(forms) == 1 {
		out = forms[0]
	}
	out["description"] = doc
	return out
}
