package elem

import "math"

// Tanh returns the hyperbolic tangent: near 0 as a quotient of polynomials (Cephes), elsewhere as 1 -
// 2/(e^2x + 1).
func Tanh[F Float](x F) F {
	a := math.Abs(float64(x))
	if a >= 0.625 {
		return F(math.Copysign(1-2/(Exp[F](2*a)+1), float64(x)))
	}
	s := float64(a * a)
	p := float64((float64((float64(-9.64399179425052238628e-1*s)-9.92877231001918586564e1)*s) -
		1.61468768441708447952e3) * s)
	q := float64((float64((s+1.12811678491632931402e2)*s)+2.23548839060100448583e3)*s) + 4.84406305325125486048e3
	v := float64(x)
	return F(v + float64(v*p/q))
}
