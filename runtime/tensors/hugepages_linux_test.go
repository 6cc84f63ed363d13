package tensors

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"unsafe"
)

// The system notes the request for large pages under an arena, in the flags of that part of memory.
func TestArenaAsksForLargePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil {
		t.Skip("this kernel has no large pages")
	}
	b := alignedBytes(16 << 20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	middle := uintptr(unsafe.Pointer(&b[len(b)/2]))
	for _, part := range regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) [\s\S]*?^VmFlags:(.*)$`).
		FindAllStringSubmatch(string(maps), -1) {
		var lo, hi uintptr
		if _, err := fmt.Sscanf(part[1]+" "+part[2], "%x %x", &lo, &hi); err != nil {
			t.Fatal(err)
		}
		if lo <= middle && middle < hi {
			if !regexp.MustCompile(`\bhg\b`).MatchString(part[3]) {
				t.Errorf("the arena's flags are%s, without hg", part[3])
			}
			return
		}
	}
	t.Error("the arena is in no part of memory")
}
