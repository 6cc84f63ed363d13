// Package strict reads YAML the way a compiler reads source: all mistakes at once, each at its place.
//
// [Parse] turns a file into a [Doc], a tree of [Node] that keeps positions. [Doc.Set] changes the tree as
// `--set train.steps=5` asks. [Doc.Decode] fills a Go struct from it and remembers where each field was
// written, so that later checks can point at it with [Doc.Pos].
//
// # Struct tags
//
//	yaml:"steps"          the key
//	doc:"last step"       for the schema and the reference
//	enum:"a,b,c"          the values that a text may have
//	meant:"x=a,y=a"       other tools' words for them, which a message translates
//	now:"a"               those of them (or of any scalar) that work today; "-" is none
//	keys:"a,b"            the keys of a map, if not any
//	min, max, over, under the range of a number (over and under are exclusive)
//	null:"none"           null is the type's zero, which differs from what absent means
//
// A type with more than one form implements [Unmarshaler]. Null is the same as absent unless the tag null says
// otherwise. Keys of an embedded struct are the struct's own. An integer may be
// written as 300B (K M B T, powers of 1000); it does not start with 0.
//
// What this package does not do: it reads no files and knows nothing of jobs or clusters.
package strict
