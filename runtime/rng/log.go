package rng

import "math"

// Log returns the natural logarithm of a positive number, within 1 ulp and with the same bits on every
// machine (math.Log differs by platform). With x = 2^k (1+f) and s = f/(2+f), log(1+f) = 2s + 2s^3/3 + ...,
// with the coefficients of FreeBSD's e_log.c.
func Log(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	if x != x || x > math.MaxFloat64 {
		return x
	}
	m, e := split(x)
	f, k := m-1, float64(e)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := 2.857142874366239149e-01 + float64(s4*(1.818357216161805012e-01+float64(s4*1.479819860511658591e-01)))
	t1 = float64(s2 * (6.666666666666735130e-01 + float64(s4*t1)))
	t2 := 2.222219843214978396e-01 + float64(s4*1.531383769920937332e-01)
	t2 = float64(s4 * (3.999999999940941908e-01 + float64(s4*t2)))
	half := float64(float64(0.5*f) * f)
	lo := float64(s*(half+(t1+t2))) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - lo) - f)
}

// split returns x as m * 2^e with m from sqrt(1/2) to sqrt(2). It has no branch for normal x, because half
// of all predictions would be wrong.
func split(x float64) (m float64, e int) {
	if !(x >= 0x1p-1022) {
		m, e = math.Frexp(x)
		if m < math.Sqrt2/2 {
			m, e = m*2, e-1
		}
		return m, e
	}
	const one, least = 1023 << 52, 0x3fe6a09e667f3bcd // the bits of 1 and of sqrt(1/2)
	bits := math.Float64bits(x) + (one - least)
	return math.Float64frombits(bits&(1<<52-1) + least), int(bits>>52) - 1023
}
