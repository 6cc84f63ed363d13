//go:build cuda && linux

package cuda

/*
#include "driver.h"
*/
import "C"

import "fmt"

// Element is the element type of a tensor map, with the driver's number.
type Element int

// The element types of tensors that kernels copy in tiles.
const (
	ElementFloat16  Element = 6
	ElementFloat32  Element = 7
	ElementBFloat16 Element = 9
)

// Tiles describes a tensor that kernels for sm_90 and later copy tile by tile (TMA). Dims are innermost
// first, 1 to 5.
type Tiles struct {
	Element Element
	Memory  Memory   // starts at a multiple of 16 bytes
	Dims    []uint64 // sizes
	Strides []uint64 // bytes from one index to the next, for each dim except the innermost; multiples of 16
	Box     []uint32 // size of a tile, up to 256 in each dim
	Swizzle int      // permutation of shared memory: 0, 32, 64 or 128 bytes
}

// swizzles maps the bytes to the driver's numbers.
var swizzles = map[int]C.CUtensorMapSwizzle{0: 0, 32: 1, 64: 2, 128: 3}

// promotion lets the L2 cache fetch 128 bytes at a time: CU_TENSOR_MAP_L2_PROMOTION_L2_128B.
const promotion = 2

// Map encodes the description for a kernel, which takes it by value, aligned at 64 bytes, with
// [Args.Bytes].
func (t Tiles) Map() (m [128]byte, err error) {
	n := len(t.Dims)
	swizzle, ok := swizzles[t.Swizzle]
	if n < 1 || n > 5 || len(t.Strides) != n-1 || len(t.Box) != n || !ok {
		panic(fmt.Sprintf("cuda: invalid tiles %+v", t))
	}
	var dims, strides [5]C.cuuint64_t
	var box, steps [5]C.cuuint32_t
	for i := range t.Dims {
		dims[i], box[i], steps[i] = C.cuuint64_t(t.Dims[i]), C.cuuint32_t(t.Box[i]), 1
		if i > 0 {
			strides[i-1] = C.cuuint64_t(t.Strides[i-1])
		}
	}
	var opaque C.planc_tensor_map
	r := C.planc_tiles(&opaque, C.CUtensorMapDataType(t.Element), C.cuuint32_t(n), C.CUdeviceptr(t.Memory.Pointer),
		&dims[0], &strides[0], &box[0], &steps[0], swizzle, promotion)
	if err := driverError(r, "cuTensorMapEncodeTiled", "%v of %v", t.Box, t.Dims); err != nil {
		return m, err
	}
	for i := range m {
		m[i] = byte(opaque.bytes[i])
	}
	return m, nil
}
