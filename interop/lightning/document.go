package lightning

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// document is a user's file. Its strategy is a name or a mapping. A name becomes a mapping when an argument of it is
// set to another value than the default.
type document struct{ *section }

// Set sets a key.
func (d *document) Set(v interop.Value) error {
	name, ok := d.Get(strategyKey)
	_, isMapping := d.Get(classKey)
	switch {
	case v.IsAbsent:
		return d.Remove(v.Key)
	case v.Key == classKey && isMapping:
		return d.replaceClass(v)
	case v.Key == classKey && v.Text == strategiesPackage+"FSDPStrategy":
		return d.section.Set(interop.Value{Key: strategyKey, Text: "fsdp"})
	case v.Key == shardingKey && name == "fsdp" && v.Text == shardings[0].name:
		return nil // the default
	case v.Key == policyKey && v.Text != "null" && d.has(policyKey):
		return nil // the user's own classes
	case !ok || isMapping || !strings.HasPrefix(v.Key, strategyKey+"."):
		return d.section.Set(v)
	}
	return d.expandName(name, v)
}

// expandName replaces the strategy's name by its class in place, and sets the class or an argument.
func (d *document) expandName(name string, v interop.Value) error {
	class := v.Text
	if v.Key != classKey {
		s := strategyNamed(name)
		if s == nil {
			return d.section.Set(v)
		}
		class = s.class
	}
	mapping := interop.Value{Key: strategyKey, Text: fmt.Sprintf(`{"class_path": %q}`, class)}
	if err := d.section.Set(mapping); err != nil || v.Key == classKey {
		return err
	}
	return d.section.Set(v)
}

// Remove removes a key. A strategy stays: every plan sets a name or a class, which replaces it.
func (d *document) Remove(key string) error {
	if key == strategyKey {
		return nil
	}
	return d.section.Remove(key)
}

// has reports whether the file has a key with a value.
func (d *document) has(key string) bool {
	text, ok := d.Get(key)
	return ok && text != "null"
}

// replaceClass replaces a strategy's class. The arguments of another class are not its own.
func (d *document) replaceClass(v interop.Value) error {
	class, _ := d.Get(classKey)
	if strategyOfClass(class) != strategyOfClass(v.Text) {
		if err := d.section.Remove(strings.TrimSuffix(argsKey, ".")); err != nil {
			return err
		}
		return d.section.Set(v)
	}
	return nil
}
