package costmodel

import (
	"fmt"
	"strconv"
	"strings"
)

// Quantities are floats with a unit, so that seconds are never added to bytes.
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

// Over is the time that the bytes take at the bandwidth.
func (b Bytes) Over(bw BytesPerSecond) Seconds { return Seconds(float64(b) / float64(bw)) }

// String is the amount in the largest binary unit that leaves at least 1, as "71.4 GiB".
func (b Bytes) String() string {
	return scaled(float64(b), 1024, "B", "KiB", "MiB", "GiB", "TiB", "PiB")
}

// String is the duration in s, ms or µs, as "12.2 s".
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

// String is the bandwidth as cluster files write it, as "450GB/s".
func (b BytesPerSecond) String() string {
	return strings.ReplaceAll(scaled(float64(b), 1000, "B/s", "kB/s", "MB/s", "GB/s", "TB/s"), " ", "")
}

// String is the rate, as "989 TFLOP/s".
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

// digits is v to four significant digits, without an exponent.
func digits(v float64) string {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}

// bandwidthUnits are those of cluster files; a small b is bits.
var bandwidthUnits = []struct {
	name string
	size BytesPerSecond
}{
	{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12},
	{"kb/s", 1e3 / 8}, {"Mb/s", 1e6 / 8}, {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8},
}

// ParseBandwidth reads "450GB/s" or "400Gb/s". A bare number has no unit and is an error that shows both
// readings.
func ParseBandwidth(s string) (BytesPerSecond, error) {
	t := strings.TrimSpace(s)
	for _, u := range bandwidthUnits {
		num, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(v > 0) || v > 1e9 {
			return 0, fmt.Errorf("%q is not a positive bandwidth", s)
		}
		return BytesPerSecond(v) * u.size, nil
	}
	if v, err := strconv.ParseFloat(t, 64); err == nil {
		return 0, fmt.Errorf("%s has no unit: %sGB/s is bytes, %sGb/s is bits (%sGB/s)", t, t, t, digits(v/8))
	}
	return 0, fmt.Errorf("%q is not a bandwidth; write it as 450GB/s (bytes) or 400Gb/s (bits)", s)
}
