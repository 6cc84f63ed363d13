package align

import "testing"

func TestFunctions(t *testing.T) {
	const asm = "TEXT ·a(SB)\n\tJNE x\n\tRET\n\nx:\n\tRET\n\n// func b()\nTEXT ·b(SB)\n\tRET\n"
	const want = "TEXT ·a(SB)\n\tJNE x\n\tRET\n\nx:\n\tRET\n\tPCALIGN $64\n\n// func b()\nTEXT " +
		"·b(SB)\n\tRET\n\tPCALIGN $64\n"
	if got := string(Functions([]byte(asm))); got != want {
		t.Errorf("%s", got)
	}
	if got := string(Functions([]byte("\tRET\n\nDATA c"))); got != "\tRET\n\tPCALIGN $64\n\nDATA c" {
		t.Errorf("before data: %s", got)
	}
}
