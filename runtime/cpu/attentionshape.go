package cpu

import "github.com/planc-dev/planc/runtime/cpu/attention"

// AttentionShape describes a call of Attention.
type AttentionShape = attention.Shape

// AttentionMask is the part of an AttentionShape about the keys that a query sees.
type AttentionMask = attention.Mask

// Zigzag is the part of an AttentionShape about positions that are not consecutive.
type Zigzag = attention.Zigzag
