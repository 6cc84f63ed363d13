// Package tree reads JSON, YAML and TOML as one tree of keys with positions, and edits such files in place.
//
// An edit changes only the bytes of one key. Comments, order, indentation, quotes and line ends of everything else stay
// as they are. Each edit is checked: the edited text is parsed again, and the edit is refused if the key does not have
// the wanted value or, in files with YAML anchors, if another key has changed.
//
// JSON may have comments (//, # and /* */) and trailing commas, because DeepSpeed reads its file as Hjson.
package tree
