package cpu

import "github.com/planc-dev/planc/runtime/cpu/attention"

// AttentionShape describes a call of Attention.
type AttentionShape = attention.Shape
