// Package strict reads YAML as a compiler reads source code: it reports all input errors at once, each with its
// position.
//
// [Parse] turns a file into a [Doc], a tree of [Node] that keeps positions. [Doc.Set] applies an override such as
// `--set train.steps=5` to the tree. [Doc.Decode] fills a Go struct from the tree and remembers the position of each
// field, which [Doc.Pos] returns to later checks. Start reading at decode.go.
//
// # Struct tags
//
//	yaml:"steps"              the key
//	alias:"n"                 another name of the key
//	doc:"last step"           for the schema and the reference page
//	enum:"a,b,c"              the allowed values of a text
//	meant:"x=a,y=a"           other tools' words for these values; an error message suggests the translation
//	now:"a"                   the values that planc supports; "-" means none
//	keys:"a,b"                the keys of a map, if they are restricted
//	min, max, over, under     the range of a number (over and under are exclusive)
//	null:"none"               null sets the field's zero value, which differs from the default
//
// A type with more than one form implements [Unmarshaler]. Null means the same as an absent key, unless the tag null
// says otherwise. Keys of an embedded struct belong to the struct itself. An integer may be written as 300B (K M B T,
// powers of 1000); it must not start with 0.
//
// What this package does not do: it reads no files, and it knows nothing of jobs or clusters.
package strict
