package space

// VariantCount is the number of variants of a layer's functions, see Variant.
const VariantCount = 8

// PlainLayers reports whether no layer has functions that recompute. Groups of blocks run the same functions
// again.
func (a *RecomputeChoice) PlainLayers() bool {
	return a.Grouped || a.Kind == "none" || a.Kind == AnyKind
}

// Variant numbers the functions that layers have.
func (a *RecomputeChoice) Variant(each bool) (i int) {
	switch {
	case a.PlainLayers():
	case a.Kind == "selective":
		i = 1
	case a.Split:
		i = 3
	default:
		i = 2
	}
	if each {
		i += VariantCount / 2
	}
	return i
}

// LayersAndEvery returns recompute_layers and recompute_every.
func (a *RecomputeChoice) LayersAndEvery(n int) (layers, every int) {
	switch {
	case a.Kind == "none" || a.Kind == AnyKind:
		return 0, 1
	case a.Grouped:
		return a.Layers, n
	}
	return n, 1
}

// AnyKind stands for all kinds of recomputation.
const AnyKind = "any"
