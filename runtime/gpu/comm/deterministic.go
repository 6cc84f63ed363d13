//go:build cuda && linux

package comm

import (
	"fmt"
	"os"
	"strings"
)

// Deterministic is the environment variable that, if it is 1, fixes the algorithm, the protocol and the
// number of blocks of NCCL's collectives. These determine the order of additions. Otherwise NCCL chooses
// them.
const Deterministic = "PLANC_DETERMINISTIC"

// fixedCTAs is the number of blocks of each communicator in this mode. It is assumed to saturate an H100's
// links; this was not measured.
const fixedCTAs = 16

// fixes lists the settings of NCCL in this mode. A setting in the environment has precedence. Rings support
// all collectives. Switches and network cards that add (NVLS, CollNet) use an order of their own.
var fixes = []struct {
	name, value string
}{{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}, {"NCCL_NVLS_ENABLE", "0"}, {"NCCL_COLLNET_ENABLE", "0"}}

// userCTAs lists the variables by which users set the number of blocks.
var userCTAs = []string{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"}

// FixCollectives sets NCCL's variables, which NCCL reads at its first use, and returns a text of what is
// fixed. The text is empty if the mode is off. ctas is 0 if NCCL or the user decides. Values that the user
// has set are kept, and the text lists them.
func FixCollectives() (report string, ctas int, err error) {
	switch v := os.Getenv(Deterministic); v {
	case "", "0":
		return "", 0, nil
	case "1":
	default:
		return "", 0, fmt.Errorf("%s=%q: must be 1 or 0", Deterministic, v)
	}
	var ours, theirs []string
	for _, f := range fixes {
		if v, set := os.LookupEnv(f.name); set && v != f.value {
			theirs = append(theirs, f.name+"="+v)
			continue
		}
		if err := os.Setenv(f.name, f.value); err != nil {
			return "", 0, err
		}
		ours = append(ours, f.name+"="+f.value)
	}
	ctas = fixedCTAs
	for _, name := range userCTAs {
		if v, set := os.LookupEnv(name); set {
			theirs, ctas = append(theirs, name+"="+v), 0
		}
	}
	if ctas > 0 {
		ours = append(ours, fmt.Sprintf("%d CTAs", ctas))
	}
	report = "deterministic by " + strings.Join(ours, ", ")
	if len(theirs) > 0 {
		report += "; set in the environment: " + strings.Join(theirs, ", ")
	}
	return report, ctas, nil
}
