// Package asm holds the assembly of package cpu's matmuls, which tools/avo generates (z*_amd64.s), with the
// structs that it reads. It also detects which instruction sets the machine has.
//
// The assembly relies on what its callers pass (pointers, counts above zero, masks) and checks nothing. It
// keeps no pointer and calls no Go. Package vec has the assembly of loops over vectors.
package asm
