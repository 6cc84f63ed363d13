//go:build cuda && linux

package cuda

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// The compiler gets a source with its headers and its GPU. Its messages are returned, and each failing call
// is named. Every program is destroyed.
func TestNVRTC(t *testing.T) {
	_, calls := fake(t, "new")
	n := must(loadNVRTC([]string{filepath.Join(fakeRoot, "new")}))(t)
	if n.Version != "13.5" {
		t.Errorf("version %s", n.Version)
	}
	s := Source{Name: "k.cu", Text: "T\n", Headers: map[string]string{"b.cuh": "B\n", "a.cuh": "A\n"},
		Folders: []string{"/include"}, Arch: "90a"}
	if got, want := string(must(n.Compile(s))(t)),
		"a.cuh=A\nb.cuh=B\nk.cu=T\n-std=c++17 -arch=sm_90a -I/include "; got != want {
		t.Errorf("compiled %q, want %q", got, want)
	}
	var failed *Error
	for _, call := range []string{"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"} {
		t.Setenv("PLANC_FAKE_FAIL", call+":1")
		if _, err := n.Compile(s); !errors.As(err, &failed) || failed.Call != call {
			t.Errorf("%s: %v", call, err)
		}
	}
	t.Setenv("PLANC_FAKE_FAIL", "")
	s.Text = "wrong"
	var wrong *SourceError
	if _, err := n.Compile(s); !errors.As(err, &wrong) ||
		err.Error() != "k.cu does not compile:\nk.cu(1): error: wrong" {
		t.Errorf("%v", err)
	}
	s.Text, s.Arch = "", "none"
	if _, err := n.Compile(s); err == nil ||
		err.Error() != "nvrtcCompileProgram: nvrtcResult (5): NVRTC_ERROR_INVALID_OPTION" {
		t.Errorf("%v", err)
	}
	if got := strings.Count(calls(), "destroyed"); got != 6 { // all except the one that was not created
		t.Errorf("%d programs are destroyed", got)
	}
}

// The real library compiles code for GPUs on a machine without one.
func TestRealNVRTC(t *testing.T) {
	folders := nvidiaFolders(t, "lib")
	openAll(t, folders, "libnvrtc-builtins.so.*")
	n := must(loadNVRTC(folders))(t)
	t.Logf("%+v", n)
	s := Source{Name: "axpy.cu", Headers: map[string]string{"scale.cuh": "#define SCALE 2.0f\n"},
		Text: "#include \"scale.cuh\"\nextern \"C\" __global__ void axpy(const float* x, float* y) { y[threadIdx.x] " +
			"+= SCALE * x[threadIdx.x]; }\n"}
	for _, s.Arch = range []string{"80", "90a", "100a"} {
		if cubin := must(n.Compile(s))(t); !bytes.HasPrefix(cubin, []byte("\x7fELF")) ||
			!bytes.Contains(cubin, []byte("axpy")) {
			t.Errorf("for sm_%s: %d bytes, and they are no cubin", s.Arch, len(cubin))
		}
	}
	s.Headers["scale.cuh"] = ""
	var wrong *SourceError
	if _, err := n.Compile(s); !errors.As(err, &wrong) ||
		!strings.Contains(wrong.Log, `axpy.cu(2): error: identifier "SCALE" is undefined`) {
		t.Errorf("%v", err)
	}
}
