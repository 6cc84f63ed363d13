//go:build !amd64

package vec

// WidenBF16 does nothing on this platform, nor do the functions below: they return how many elements they
// processed.
func WidenBF16(y []float32, a []uint16) int { return 0 }

// WidenF16 does nothing on this platform.
func WidenF16(y []float32, a []uint16) int { return 0 }

// NarrowBF16 does nothing on this platform.
func NarrowBF16(y []uint16, a []float32) int { return 0 }

// NarrowF16 does nothing on this platform.
func NarrowF16(y []uint16, a []float32) int { return 0 }

// AddTo does nothing on this platform.
func AddTo(y, a []float32) int { return 0 }
