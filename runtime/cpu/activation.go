package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// Exp returns e^x.
func Exp[F Float](x F) F { return F(elem.Exp[F](float64(x))) }

// Sigmoid returns 1/(1+e^-x).
func Sigmoid[F Float](x F) F { return F(sigmoid[F](float64(x))) }

func sigmoid[F Float](x float64) float64 { return 1 / (1 + elem.Exp[F](-x)) }

// Tanh returns the hyperbolic tangent.
func Tanh[F Float](x F) F { return elem.Tanh(x) }

const (
	geluC = 0.79788456080286535588 // sqrt(2/π)
	geluA = 0.044715
)

// Gelu returns x/2 * (1 + tanh(sqrt(2/π) * (x + 0.044715 x^3))), which Hugging Face calls "gelu_new". It is
// computed as x * sigmoid(2u), which is equal and loses no precision for negative x.
func Gelu[F Float](x F) F {
	v := float64(x)
	return F(v * sigmoid[F](2*geluC*float64(v+float64(geluA*float64(v*float64(v*v))))))
}

// GeluGrad returns the derivative of Gelu.
func GeluGrad[F Float](x F) F {
	v := float64(x)
	v2 := float64(v * v)
	s := sigmoid[F](2 * geluC * float64(v+float64(geluA*float64(v*v2))))
	du := 2 * geluC * (1 + float64(3*geluA*v2))
	return F(s + float64(float64(v*float64(s*(1-s)))*du))
}

// GeluErf returns x * Φ(x), with Φ the distribution function of the normal distribution: "gelu" of Hugging
// Face.
func GeluErf[F Float](x F) F { return F(float64(x) * phi(float64(x))) }

// GeluErfGrad returns the derivative of GeluErf.
func GeluErfGrad[F Float](x F) F {
	v := float64(x)
	density := elem.Exp[F](-0.5*float64(v*v)) * (1 / (math.Sqrt2 * math.SqrtPi))
	return F(phi(v) + float64(v*density))
}

func phi(x float64) float64 { return 0.5 * math.Erfc(-x*(1/math.Sqrt2)) }

// SigmoidGrad returns the derivative of Sigmoid.
func SigmoidGrad[F Float](x F) F {
	s := sigmoid[F](float64(x))
	return F(float64(s * (1 - s)))
}

// Silu returns x * sigmoid(x).
func Silu[F Float](x F) F { return F(float64(x) * sigmoid[F](float64(x))) }

// SiluGrad returns the derivative of Silu.
func SiluGrad[F Float](x F) F {
	v := float64(x)
	s := sigmoid[F](v)
	return F(s + float64(v*float64(s*(1-s))))
}

// Softcap returns cap * tanh(x/cap).
func Softcap[F Float](x, cap F) F { return F(cap * Tanh(x/cap)) }

// SoftcapGrad returns the derivative of Softcap.
func SoftcapGrad[F Float](x, cap F) F {
	t := Tanh(x / cap)
	return 1 - F(t*t)
}

// Relu returns max(x, 0).
func Relu[F Float](x F) F { return max(x, 0) }

// ReluGrad returns the derivative of Relu, 0 at 0.
func ReluGrad[F Float](x F) F {
	if x > 0 {
		return 1
	}
	return 0
}
