//go:build cuda && linux

package gpu

import (
	"fmt"
	"os"
	"strings"
)

// deterministic is the variable of the environment that, with 1, takes from NCCL what it would choose by itself: by
// which algorithm and protocol a collective runs, and on how many blocks, which say in which order numbers are added.
const deterministic = "PLANC_DETERMINISTIC"

// fixedCTAs are the blocks of each communicator then; assumed to fill an H100's links, not measured.
const fixedCTAs = 16

// fixes are what NCCL is told then, where the environment does not say it already. Rings know all collectives; switches
// and network cards that add (NVLS, CollNet) do it in an order of their own.
var fixes = []struct {
	name, value string
}{{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}, {"NCCL_NVLS_ENABLE", "0"}, {"NCCL_COLLNET_ENABLE", "0"}}

// theirCTAs are the variables by which users say how many blocks there are.
var theirCTAs = []string{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"}

// fixCollectives sets NCCL's variables, which it reads when it is used first, and says what is fixed, "" where nobody
// asked; ctas is 0 where NCCL decides. What a user has set stays, and is said.
func fixCollectives() (said string, ctas int, err error) {
	switch v := os.Getenv(deterministic); v {
	case "", "0":
		return "", 0, nil
	case "1":
	default:
		return "", 0, fmt.Errorf("%s is %q; it is 1 or 0", deterministic, v)
	}
	if os.Getenv(timeWays) != "" {
		return "", 0, fmt.Errorf("%s=1 and %s exclude each other: what is fastest differs from run to run, and "+
			"another way to multiply adds in another order", deterministic, timeWays)
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
	for _, name := range theirCTAs {
		if v, set := os.LookupEnv(name); set {
			theirs, ctas = append(theirs, name+"="+v), 0
		}
	}
	if ctas > 0 {
		ours = append(ours, fmt.Sprintf("%d CTAs", ctas))
	}
	said = "deterministic by " + strings.Join(ours, ", ")
	if len(theirs) > 0 {
		said += "; as the environment has it " + strings.Join(theirs, ", ")
	}
	return said, ctas, nil
}
