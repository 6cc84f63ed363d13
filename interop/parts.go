package interop

import "strings"

// Part is one of several files that are edited together.
type Part struct {
	Name string // of the file
	// Prefix begins the keys of the file, as [Import].Values spells them; "" for the main file.
	Prefix string
	Doc    Document
}

// Parts is a document of several files: an Accelerate configuration and the ds_config.json that it names. The main file
// is the first.
type Parts []Part

// holder returns the document that holds a key, and how that document spells the key.
func (p Parts) holder(key string) (Document, string) {
	for _, part := range p[1:] {
		if below, ok := strings.CutPrefix(key, part.Prefix); ok {
			return part.Doc, below
		}
	}
	return p[0].Doc, key
}

// Get returns the text of a key's value and whether its file has the key.
func (p Parts) Get(key string) (text string, ok bool) {
	doc, key := p.holder(key)
	return doc.Get(key)
}

// Set changes the value of a key in the file that holds it.
func (p Parts) Set(v Value) error {
	doc, key := p.holder(v.Key)
	v.Key = key
	return doc.Set(v)
}

// Remove deletes a key from the file that holds it.
func (p Parts) Remove(key string) error {
	doc, key := p.holder(key)
	return doc.Remove(key)
}

// Bytes returns the changed main file.
func (p Parts) Bytes() []byte { return p[0].Doc.Bytes() }

var _ Document = Parts(nil)
