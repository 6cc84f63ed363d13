//go:build !amd64

package vec

// WidenBF16 does nothing here, nor do the functions below: they return how many elements they did.
func WidenBF16(y []float32, a []uint16) int { return 0 }

// WidenF16 does nothing here.
func WidenF16(y []float32, a []uint16) int { return 0 }

// NarrowBF16 does nothing here.
func NarrowBF16(y []uint16, a []float32) int { return 0 }

// NarrowF16 does nothing here.
func NarrowF16(y []uint16, a []float32) int { return 0 }

// AddTo does nothing here.
func AddTo(y, a []float32) int { return 0 }
