//go:build cuda && linux

package comm

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// unset removes environment variables until the end of the test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "") // restores the value afterwards
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// PLANC_DETERMINISTIC=1 fixes NCCL's algorithms. Settings of the user are kept and reported.
func TestDeterministic(t *testing.T) {
	names := slices.Clone(userCTAs)
	for _, f := range fixes {
		names = append(names, f.name)
	}
	for _, c := range []struct {
		env         []string
		output, why string
		ctas        int
		algo        string
	}{
		{env: []string{}},
		{env: []string{"PLANC_DETERMINISTIC=0"}},
		{env: []string{"PLANC_DETERMINISTIC=yes"}, why: `PLANC_DETERMINISTIC="yes": must be 1 or 0`},
		{env: []string{"PLANC_DETERMINISTIC=1"}, ctas: fixedCTAs, algo: "Ring",
			output: "deterministic by NCCL_ALGO=Ring, NCCL_PROTO=Simple, NCCL_NVLS_ENABLE=0, " +
				"NCCL_COLLNET_ENABLE=0, 16 CTAs"},
		{env: []string{"PLANC_DETERMINISTIC=1", "NCCL_ALGO=Tree", "NCCL_MAX_CTAS=4"}, algo: "Tree",
			output: "deterministic by NCCL_PROTO=Simple, NCCL_NVLS_ENABLE=0, NCCL_COLLNET_ENABLE=0; set in the " +
				"environment: NCCL_ALGO=Tree, NCCL_MAX_CTAS=4"},
	} {
		t.Run(strings.Join(c.env, " "), func(t *testing.T) {
			unset(t, append(names, Deterministic)...)
			for _, v := range c.env {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			for range 2 { // a second run in the same process gives the same
				output, ctas, err := FixCollectives()
				if c.why != "" {
					if err == nil || !strings.Contains(err.Error(), c.why) {
						t.Errorf("%v, want %s", err, c.why)
					}
					return
				}
				if err != nil || output != c.output || ctas != c.ctas || os.Getenv("NCCL_ALGO") != c.algo {
					t.Errorf("%q with %d CTAs and algorithm %q: %v; want %q", output, ctas, os.Getenv("NCCL_ALGO"),
						err, c.output)
				}
			}
		})
	}
}
