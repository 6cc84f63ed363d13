package rng

import "math"

// Normal returns number i of the key's stream as a draw from the normal distribution with mean 0 and
// standard deviation 1. It uses one counter and lies within ±8.2.
func Normal(key, i uint64) float64 {
	// The middle of one of 2^52 equal parts of (0, 1). The sum and the multiplication are exact.
	return quantile((float64(Bits(key, i)>>12) + 0.5) * (1.0 / (1 << 52)))
}

// quantile returns the inverse of the normal distribution function for p in (0, 1), to about 16 digits:
// algorithm AS 241, PPND16 (Wichura, Applied Statistics 37, 1988), a quotient of two polynomials in each of
// three ranges.
func quantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return float64(q*poly(&centreA, r)) / poly(&centreB, r)
	}
	r := math.Sqrt(-Log(min(p, 1-p)))
	var z float64
	if r <= 5 {
		z = poly(&tailC, r-1.6) / poly(&tailD, r-1.6)
	} else {
		z = poly(&tailE, r-5) / poly(&tailF, r-5)
	}
	return math.Copysign(z, q)
}

// poly returns c[0] + c[1]x + ... by Horner's rule, with each multiplication rounded. It is unrolled, because it
// initializes parameters by the million.
func poly(c *[8]float64, x float64) float64 {
	s := float64(c[7]*x) + c[6]
	s = float64(s*x) + c[5]
	s = float64(s*x) + c[4]
	s = float64(s*x) + c[3]
	s = float64(s*x) + c[2]
	s = float64(s*x) + c[1]
	return float64(s*x) + c[0]
}

var (
	centreA = [8]float64{
		3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
		4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
	}
	centreB = [8]float64{
		1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
		2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
	}
	tailC = [8]float64{
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
	}
	tailD = [8]float64{
		1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
	}
	tailE = [8]float64{
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
		2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
	}
	tailF = [8]float64{
		1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
	}
)
