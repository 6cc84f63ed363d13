package spec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const schemaFile = "../../docs/job.schema.json"

// TestSchemaIsCurrent holds docs/job.schema.json to the Go types; -update writes it.
func TestSchemaIsCurrent(t *testing.T) {
	s := schemaOf(reflect.ValueOf(*defaults()), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "planc job file"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(filepath.FromSlash(schemaFile), text, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(filepath.FromSlash(schemaFile))
	if err != nil || string(old) != string(text) {
		t.Errorf("%s is not what the Go types say (%v); go test ./ir/spec -run TestSchemaIsCurrent -update",
			schemaFile, err)
	}
}

type schema = map[string]any

// shortForms are what types accept in addition to their usual form.
var shortForms = map[reflect.Type]schema{
	reflect.TypeFor[ClusterRef](): {"type": "string"},
	reflect.TypeFor[Source]():     {"type": "string"},
	reflect.TypeFor[Precision]():  {"enum": []string{"f64", "f32", "bf16", "fp16", "fp8"}},
	reflect.TypeFor[LossScale](): {"anyOf": []schema{{"enum": []string{"none", "dynamic"}}, {"type": "number",
		"exclusiveMinimum": 0}}},
}

// schemaOf is the schema of a value's type; the value is the default.
func schemaOf(v reflect.Value, tag reflect.StructTag) schema {
	t := v.Type()
	switch {
	case t == reflect.TypeFor[ModelRef]():
		return schema{"anyOf": []schema{{"type": "string"}, modelSchema()}}
	case t == reflect.TypeFor[Sources]():
		one := schemaOf(reflect.New(reflect.TypeFor[Source]()).Elem(), "")
		return schema{"anyOf": []any{one, schema{"type": "array", "items": one}}}
	case t == reflect.TypeFor[Valid]():
		files := schemaOf(reflect.New(reflect.TypeFor[Sources]()).Elem(), "")
		return schema{"anyOf": []any{schema{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, files}}
	case strings.HasPrefix(t.Name(), "Pin["):
		one := schemaOf(reflect.New(t.Field(0).Type.Elem()).Elem(), tag)
		return schema{"anyOf": []any{one, schema{"type": "array", "items": one}}}
	case t.Kind() == reflect.Struct:
		s := mappingSchema(v)
		if short, ok := shortForms[t]; ok {
			return schema{"anyOf": []any{short, s}}
		}
		return s
	case t.Kind() == reflect.Slice:
		return schema{"type": "array", "items": schemaOf(reflect.New(t.Elem()).Elem(), tag)}
	case t.Kind() == reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(reflect.New(t.Elem()).Elem(), tag)}
	case t.Kind() == reflect.Pointer:
		return schemaOf(reflect.New(t.Elem()).Elem(), tag)
	case t.Kind() == reflect.Array:
		return schema{"type": "array", "items": schemaOf(v.Index(0), tag), "minItems": t.Len(), "maxItems": t.Len()}
	}
	return scalarSchema(t.Kind(), tag)
}

func mappingSchema(v reflect.Value) schema {
	properties := schema{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		if f.Anonymous && key == "" {
			maps.Copy(properties, mappingSchema(v.Field(i))["properties"].(schema))
		}
		if key == "" || key == "-" {
			continue
		}
		s := schemaOf(v.Field(i), f.Tag)
		if doc := f.Tag.Get("doc"); doc != "" {
			switch absent := f.Tag.Get("absent"); {
			case strings.HasPrefix(absent, "required"):
				doc += "; " + absent
			case absent != "":
				doc += "; absent: " + absent
			}
			s["description"] = doc + classWords[f.Tag.Get("class")]
		}
		if f.Type.Kind() != reflect.Struct && f.Type.Kind() != reflect.Pointer && !v.Field(i).IsZero() {
			s["default"] = v.Field(i).Interface()
		}
		properties[key] = s
		if alias := f.Tag.Get("alias"); alias != "" {
			other := maps.Clone(s)
			other["description"] = "another name of " + key
			properties[alias] = other
		}
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

var classWords = map[string]string{"": "", "d": " [decides the plan]", "r": " [run-time]", "c": " [compiled in]"}

func scalarSchema(k reflect.Kind, tag reflect.StructTag) schema {
	switch k {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		if enum := tag.Get("enum"); enum != "" {
			return schema{"enum": strings.Split(enum, ",")}
		}
		return schema{"type": "string"}
	}
	s := schema{"type": "number"}
	for key, word := range map[string]string{"min": "minimum", "max": "maximum", "over": "exclusiveMinimum",
		"under": "exclusiveMaximum"} {
		if x, err := strconv.ParseFloat(tag.Get(key), 64); err == nil {
			s[word] = x
		}
	}
	if k == reflect.Float64 { // readers of YAML 1.1 take 3e-4, which has no point, for a string
		return schema{"anyOf": []schema{s, {"type": "string", "pattern": `^[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$`}}}
	}
	s["type"] = "integer"
	return schema{"anyOf": []schema{s, {"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?[KMBT]$`}}}
}
