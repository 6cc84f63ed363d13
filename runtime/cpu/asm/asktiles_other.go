//go:build !(linux && amd64)

package asm

// askForTiles returns false: how to request tiles on other systems is not known.
func askForTiles() bool { return false }
