//go:build !(linux && amd64)

package cpu

// askForTiles tells that tiles are not used: how other systems are asked for them is not known here.
func askForTiles() bool { return false }
