// Package align aligns the functions of generated assembly in memory. Begin with Functions.
package align

import "bytes"

// Functions aligns each function of an assembly file at a cache line. Otherwise its address, and with it
// how its loops lie in cache lines, depends on the rest of a program; bench/step/README.md has figures. The
// directive comes after a function's last instruction, so that nothing inside moves.
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
