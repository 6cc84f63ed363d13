package costmodel

import (
	"fmt"
	"strconv"
	"strings"
)

// Quantities are floats with a unit, so that seconds cannot be added to bytes.
type (
	// Bytes is an amount of memory or of traffic.
	Bytes float64
	// Seconds is a duration.
	Seconds float64
	// BytesPerSecond is a bandwidth.
	BytesPerSecond float64
	// FlopsPerSecond is a rate of floating-point operations.
	FlopsPerSecond float64
)

// Multiples of the units.
const (
	KiB Bytes          = 1 << 10
	MiB Bytes          = 1 << 20
	GiB Bytes          = 1 << 30
	MBs BytesPerSecond = 1e6
	GBs BytesPerSecond = 1e9

	Microsecond Seconds        = 1e-6
	TFLOPs      FlopsPerSecond = 1e12
)

// Over returns the time that the bytes take at the bandwidth.
func (b Bytes) Over(bw BytesPerSecond) Seconds { return Seconds(float64(b) / float64(bw)) }

// String returns the amount in the largest binary unit in which it is at least 1, such as "71.4 GiB".
func (b Bytes) String() string {
	return scaled(float64(b), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// String returns the duration in s, ms or µs, such as "12.2 s".
func (s Seconds) String() string {
	switch v := float64(s); {
	case v == 0 || v >= 1 || v <= -1:
		return digits(v) + " s"
	case v >= 1e-3 || v <= -1e-3:
		return digits(v*1e3) + " ms"
	default:
		return digits(v*1e6) + " µs"
	}
}

// String returns the bandwidth in the form of cluster files, such as "450GB/s".
func (b BytesPerSecond) String() string {
	return strings.ReplaceAll(scaled(float64(b), 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s"), " ", "")
}

// String returns the rate, such as "989 TFLOP/s".
func (f FlopsPerSecond) String() string {
	return scaled(float64(f), 1000, "FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s")
}

func scaled(v, base float64, units ...string) string {
	i := 0
	for ; i < len(units)-1 && (v >= base || v <= -base); i++ {
		v /= base
	}
	return digits(v) + " " + units[i]
}

// digits returns v with four significant digits, without an exponent.
func digits(v float64) string {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}

// bandwidthUnits are the units of cluster files; a lower-case b means bits.
var bandwidthUnits = []struct {
	name string
	size BytesPerSecond
}{
	{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12},
	{"kb/s", 1e3 / 8}, {"Mb/s", 1e6 / 8}, {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8},
}

// ParseBandwidth reads "450GB/s" or "400Gb/s". A number without a unit is an error that shows both readings.
func ParseBandwidth(s string) (BytesPerSecond, error) {
	t := strings.TrimSpace(s)
	for _, u := range bandwidthUnits {
		num, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(v > 0) || v > 1e9 {
			return 0, fmt.Errorf("%q must be a positive bandwidth", s)
		}
		return BytesPerSecond(v) * u.size, nil
	}
	if v, err := strconv.ParseFloat(t, 64); err == nil {
		return 0, fmt.Errorf("%s has no unit: use %sGB/s for bytes, or %sGb/s for bits (%sGB/s)", t, t, t, digits(v/8))
	}
	return 0, fmt.Errorf("%q is not a bandwidth; use a form such as 450GB/s (bytes) or 400Gb/s (bits)", s)
}
