package sass

import (
	"fmt"
	"os/exec"
	"regexp"
)

// release matches the version in the output of nvcc --version.
var release = regexp.MustCompile(`V([0-9.]+)`)

// Compile compiles a file of a folder with nvcc for an H100 and returns the functions, and the name of the compiler.
// skip says why that is impossible on this machine.
func Compile(dir, file string) (all []Function, compiler, skip string, err error) {
	for _, tool := range []string{"nvcc", "cuobjdump", "nvdisasm"} {
		_, err := exec.LookPath(tool)
		if err != nil {
			return nil, "", "no " + tool + ": machine code is not measured; put it on PATH", nil
		}
	}
	compiler, err = version(dir)
	if err != nil {
		return nil, "", "", err
	}
	_, err = run(dir, "nvcc", "-std=c++17", "-arch=sm_90a", "-cubin", "-o", file+".cubin", file)
	if err != nil {
		return nil, "", "", err
	}
	text, err := run(dir, "cuobjdump", "-sass", file+".cubin")
	if err != nil {
		return nil, "", "", err
	}
	return Parse(text), compiler, "", nil
}

// version returns the name of the compiler in tables of limits.
func version(dir string) (string, error) {
	text, err := run(dir, "nvcc", "--version")
	if err != nil {
		return "", err
	}
	m := release.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("nvcc --version prints no version: %s", text)
	}
	return "nvcc " + m[1] + " sm_90a", nil
}

// run runs a tool in a folder and returns its output.
func run(dir, tool string, args ...string) (string, error) {
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", tool, err, out)
	}
	return string(out), nil
}
