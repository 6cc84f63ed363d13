package cuda

import "embed"

// Sources holds this package and cuda/kernels as files, so that an installed planc can compile training
// binaries without a checkout. Only planc refers to it; the linker leaves it out of training binaries.
//
//go:embed *.go *.c *.h kernels/*.go kernels/*.cu kernels/*.cuh
var Sources embed.FS
