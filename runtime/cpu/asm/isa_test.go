package asm

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestFindISA(t *testing.T) {
	for _, test := range []struct {
		name string
		best ISA
		want ISA
		err  string
	}{
		{"auto", AVX2, AVX2, ""}, {"", Portable, Portable, ""}, {"portable", AVX512, Portable, ""},
		{"avx2", AVX512, AVX2, ""},
		{"avx512", AVX2, 0, "this machine does not support avx512: use auto (here avx2), portable, avx2"},
		{"sse", AVX2, 0, "unknown instruction set sse: use auto, portable, avx2, avx512, amx"},
	} {
		got, err := findISA(test.name, test.best)
		if got != test.want || err == nil != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("findISA(%q, %v) = %v, %v; want %v, %q", test.name, test.best, got, err, test.want, test.err)
		}
	}
}

// Linux reports the same about the processor.
func TestDetectAgreesWithTheSystem(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("no /proc/cpuinfo of an amd64")
	}
	_, flags, _ := strings.Cut(string(text), "flags\t")
	flags, _, _ = strings.Cut(flags, "\n")
	has := func(names ...string) bool {
		for _, n := range names {
			if !strings.Contains(flags+" ", " "+n+" ") {
				return false
			}
		}
		return true
	}
	want := Portable
	switch {
	case askForTiles() && has("avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl",
		"avx512_bf16", "amx_tile", "amx_bf16"):
		want = AMX
	case has("avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"):
		want = AVX512
	case has("avx2", "fma", "f16c", "bmi2"):
		want = AVX2
	}
	if best != want || HasBF16() != has("avx512_bf16") {
		t.Errorf("detected %v, bf16 %v; the flags say %v, %v", best, hasBF16, want, has("avx512_bf16"))
	}
	if want := strings.Contains(string(text), "GenuineIntel"); IsIntel() != want {
		t.Errorf("Intel's: %v, the system says %v", IsIntel(), want)
	}
}
