package runtime

import "embed"

// Sources are this package and its sub-packages as files, so that an installed planc can compile training
// binaries where there is neither a checkout nor a network. Only planc refers to it: the linker leaves it
// out of training binaries (codegen/build's tests measure that).
//
//go:embed *.go */*.[ghs]*
var Sources embed.FS
