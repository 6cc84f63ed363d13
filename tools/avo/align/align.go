// Package align places the functions of generated assembly in memory. Begin with Functions.
package align

import "bytes"

// Functions makes each function of an assembly file begin a line of the cache. Where it begins otherwise depends on
// what else a program holds, and with it how its loops lie in lines, which bench/step/README.md has figures of. The
// directive is behind a function's last instruction, so that nothing within moves.
func Functions(asm []byte) []byte {
	const end, directive = "\tRET\n", "\tPCALIGN $64\n"
	for _, next := range []string{"\n// func ", "\nDATA "} { // not a label
		asm = bytes.ReplaceAll(asm, []byte(end+next), []byte(end+directive+next))
	}
	if bytes.HasSuffix(asm, []byte(end)) {
		asm = append(asm, directive...)
	}
	return asm
}
