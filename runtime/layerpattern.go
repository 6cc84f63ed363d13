package runtime

// Layers is a repeating pattern over the layers: true if a layer has local attention.
type Layers []bool

// Pick returns local if a layer is local, else full.
func Pick[T any](l Layers, layer int, local, full T) T {
	if l[layer%len(l)] {
		return local
	}
	return full
}
