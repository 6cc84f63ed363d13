package trial

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/planc-dev/planc/runtime/num"
)

// ElemBytes returns the size in bytes of a number in memory.
func ElemBytes(t string) int {
	return map[string]int{"f64": 8, "f32": 4, "i32": 4, "bf16": 2, "f16": 2}[t]
}

// NotANumber is the error of a result that is not a number: beyond any bound, and valid in JSON.
const NotANumber = 1e300

// Numbers returns n numbers from -1 to 1 that are exact in bf16. A seed always gives the same numbers; after a Period
// they repeat.
func Numbers(n, seed int) []float64 {
	r := rand.New(rand.NewPCG(uint64(seed), 5))
	v := make([]float64, n)
	for i := range v {
		if i >= Period {
			v[i] = v[i-Period]
			continue
		}
		v[i] = float64(num.ToBF16(r.Float32()*2 - 1).Wide())
	}
	return v
}

// Period is a prime, so that rows differ.
const Period = 1048573

// Random returns [Numbers] in the representation of a type.
func Random(t string, n, seed int) []byte {
	return Repeated(Stored(t, Numbers(min(n, Period), seed)), n*ElemBytes(t))
}

// Repeated returns so many bytes by repeating the given ones.
func Repeated(once []byte, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		b = append(b, once[:min(len(once), n-len(b))]...)
	}
	return b
}

// Stored returns numbers in the representation of a type.
func Stored(t string, v []float64) (b []byte) {
	b = make([]byte, 0, len(v)*ElemBytes(t))
	for _, x := range v {
		switch t {
		case "f64":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		case "f32":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case "bf16":
			b = binary.LittleEndian.AppendUint16(b, num.ToBF16(float32(x)).Bits)
		case "f16":
			b = binary.LittleEndian.AppendUint16(b, num.ToF16(float32(x)).Bits)
		}
	}
	return b
}

// Read is the inverse of Stored.
func Read(t string, b []byte) []float64 {
	v := make([]float64, len(b)/ElemBytes(t))
	for i := range v {
		switch p := b[i*ElemBytes(t):]; t {
		case "f64":
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(p))
		case "f32":
			v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))
		case "bf16":
			v[i] = float64(num.BF16{Bits: binary.LittleEndian.Uint16(p)}.Wide())
		case "f16":
			v[i] = float64(num.F16{Bits: binary.LittleEndian.Uint16(p)}.Wide())
		}
	}
	return v
}

// RelativeError returns ‖got - want‖ / ‖want‖, or NotANumber if a value is not a number.
func RelativeError(got, want []float64) float64 {
	if len(got) != len(want) {
		return NotANumber
	}
	var d, n float64
	for i := range want {
		d += (got[i] - want[i]) * (got[i] - want[i])
		n += want[i] * want[i]
	}
	x := math.Sqrt(d / max(n, 1e-300))
	if !(x < NotANumber) || n == 0 && d > 0 {
		return NotANumber
	}
	return x
}

// Integers returns the bytes of 32-bit integers.
func Integers(v []int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}
