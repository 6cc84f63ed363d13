package runtime

import "embed"

// Sources holds this package and its sub-packages as files, so that an installed planc can compile training binaries
// without a checkout or a network. Only planc refers to it, so that the linker leaves it out of training binaries
// (codegen/build's tests measure that).
//
//go:embed *.go */*.[ghs]* */*/*.[ghs]*
var Sources embed.FS
