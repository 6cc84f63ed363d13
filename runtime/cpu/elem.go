package cpu

import "github.com/planc-dev/planc/runtime/cpu/elem"

// Float is the constraint of element types.
type Float = elem.Float

// Where describes the position of a rank's part of a dim in the whole.
type Where = elem.Where
