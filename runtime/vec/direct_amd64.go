package vec

// The functions here call the assembly by name, so that their arguments may be on the caller's stack. They
// process whole vectors and return how many elements those were: none without a table.

// WidenBF16 computes
//
//	for i := range y { y[i] = the bfloat16 a[i] }
func WidenBF16(y []float32, a []uint16) int {
	switch n := len(y); Now() {
	case AVX512:
		fromBF16AVX512(y[:n&^15], a[:n])
		return n &^ 15
	case AVX2:
		fromBF16AVX2(y[:n&^7], a[:n])
		return n &^ 7
	}
	return 0
}

// WidenF16 computes
//
//	for i := range y { y[i] = the float16 a[i] }
func WidenF16(y []float32, a []uint16) int {
	switch n := len(y); Now() {
	case AVX512:
		fromF16AVX512(y[:n&^15], a[:n])
		return n &^ 15
	case AVX2:
		fromF16AVX2(y[:n&^7], a[:n])
		return n &^ 7
	}
	return 0
}

// NarrowBF16 computes
//
//	for i := range y { y[i] = the bfloat16 nearest to a[i], ties to even }
func NarrowBF16(y []uint16, a []float32) int {
	switch n := len(y); Now() {
	case AVX512:
		toBF16AVX512(y[:n&^15], a[:n])
		return n &^ 15
	case AVX2:
		toBF16AVX2(y[:n&^7], a[:n])
		return n &^ 7
	}
	return 0
}

// NarrowF16 computes
//
//	for i := range y { y[i] = the float16 nearest to a[i], ties to even }
func NarrowF16(y []uint16, a []float32) int {
	switch n := len(y); Now() {
	case AVX512:
		toF16AVX512(y[:n&^15], a[:n])
		return n &^ 15
	case AVX2:
		toF16AVX2(y[:n&^7], a[:n])
		return n &^ 7
	}
	return 0
}

// AddTo computes
//
//	for i := range y { y[i] += a[i] }
//
// for all elements, or none.
func AddTo(y, a []float32) int {
	switch n := len(y); Now() {
	case AVX512:
		addAVX512(y, y, a[:n])
		return n
	case AVX2:
		addAVX2(y, y, a[:n])
		return n
	}
	return 0
}
