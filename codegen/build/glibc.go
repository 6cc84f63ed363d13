package build

import (
	"debug/elf"
	"go/version"
	"strings"
)

// GLIBC returns the oldest version of the GNU C library with which a binary starts, such as 2.34; "" if it does not use
// that library, as binaries for CPUs do not. The version depends on the machine that built the binary.
func GLIBC(binary string) string {
	f, err := elf.Open(binary)
	if err != nil {
		return "" // not of Linux
	}
	defer f.Close()
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return ""
	}
	var names []string
	for _, library := range needs {
		for _, n := range library.Needs {
			names = append(names, n.Dep)
		}
	}
	return newestGLIBC(names)
}

// newestGLIBC returns the newest of the versions in symbol names: 2.34 of GLIBC_2.2.5 and GLIBC_2.34.
func newestGLIBC(names []string) (newest string) {
	for _, name := range names {
		v, ok := strings.CutPrefix(name, "GLIBC_")
		if ok && version.IsValid("go"+v) && (newest == "" || version.Compare("go"+v, "go"+newest) > 0) {
			newest = v
		}
	}
	return newest
}
