package megatron

import "github.com/planc-dev/planc/interop"

// newDocument returns the document of a script.
func newDocument(*dialect, interop.File, interop.Options, *source) interop.Document { return nil }
