package asm

// detect queries the processor for its best ISA, and whether it multiplies bfloat16 (AVX512-BF16).
func detect() (isa ISA, bf16 bool) {
	const (
		fma, osxsave, f16c               = 1 << 12, 1 << 27, 1 << 29 // leaf 1, ecx
		tiles                            = 1<<22 | 1<<24             // leaf 7, edx: AMX-BF16 and AMX-TILE
		savedTiles                       = 1<<17 | 1<<18             // XCR0: tile configuration and data
		avx2, bmi2, f, dq, bw, vl        = 1 << 5, 1 << 8, 1 << 16, 1 << 17, 1 << 30, 1 << 31
		saved256, saved512        uint32 = 0x6, 0xe6 // XCR0: xmm and ymm; also the mask registers, zmm
	)
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return Portable, false
	}
	if _, _, c, _ := cpuid(1, 0); c&fma == 0 || c&osxsave == 0 || c&f16c == 0 {
		return Portable, false
	}
	saved, _ := xgetbv()
	more, b, _, d := cpuid(7, 0)
	if saved&saved256 != saved256 || b&avx2 == 0 || b&bmi2 == 0 {
		return Portable, false
	}
	if all := uint32(f | dq | bw | vl); saved&saved512 != saved512 || b&all != all {
		return AVX2, false
	}
	if more >= 1 {
		a, _, _, _ := cpuid(7, 1)
		bf16 = a&(1<<5) != 0
	}
	if bf16 && saved&savedTiles == savedTiles && d&tiles == tiles && askForTiles() {
		return AMX, bf16
	}
	return AVX512, bf16
}

// IsIntel reports whether the processor's vendor is GenuineIntel.
func IsIntel() bool {
	_, b, c, d := cpuid(0, 0)
	return b == 0x756e6547 && d == 0x49656e69 && c == 0x6c65746e // "Genu", "ineI", "ntel"
}

// numbersCores reports whether there is RDPID (leaf 7, ecx). RDTSCP, which older processors have, waits
// until all earlier instructions are done.
var numbersCores = func() bool {
	if leaves, _, _, _ := cpuid(0, 0); leaves < 7 {
		return false
	}
	_, _, c, _ := cpuid(7, 0)
	return c&(1<<22) != 0
}()

// Core returns a number of the core that the caller runs on at present, or 0 if the processor does not
// tell.
func Core() uint32 {
	if !numbersCores {
		return 0
	}
	return rdpid() & 0xfff
}
