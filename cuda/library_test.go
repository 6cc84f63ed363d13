package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// A library is searched in the given folders, then in the system's path, under each of its names. The error
// for a missing one says what it is for and how to get it; for one that does not load, it has the loader's
// message.
func TestOpenLibrary(t *testing.T) {
	lt := LibraryNamed("cuBLASLt")
	var tried []string
	loader := func(present map[string]string) func(string) (string, string) {
		return func(name string) (string, string) {
			tried = append(tried, name)
			why, found := present[name]
			if !found {
				why = name + ": cannot open shared object file: No such file or directory"
			}
			return name, why
		}
	}
	library, name, err := open(lt, []string{"/a", "/b"}, loader(map[string]string{"/b/libcublasLt.so.12": ""}))
	if err != nil || library != name || name != "/b/libcublasLt.so.12" {
		t.Errorf("opened %q, %q, %v", library, name, err)
	}
	if want := []string{"/a/libcublasLt.so.13", "/a/libcublasLt.so.12", "/a/libcublasLt.so.11", "/b/libcublasLt.so.13",
		"/b/libcublasLt.so.12"}; !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
	_, _, err = open(lt, nil, loader(nil))
	var missing *MissingError
	if !errors.As(err, &missing) || len(missing.Broken) != 0 {
		t.Fatalf("%v", err)
	}
	want := "cuBLASLt: cannot find libcublasLt.so.13, libcublasLt.so.12, libcublasLt.so.11, needed for " +
		"matrix multiplication on a GPU: " + lt.Install
	if err.Error() != want {
		t.Errorf("says\n%s\nwant\n%s", err, want)
	}
	_, _, err = open(lt, nil, loader(map[string]string{
		"libcublasLt.so.13": "libcublas.so.13: cannot open shared object file: No such file or directory"}))
	if want := "; files that exist but do not load: libcublas.so.13: cannot open"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v\nlacks %q", err, want)
	}
}

// Each library says what it is for and how to get it, because users without it read this.
func TestLibraries(t *testing.T) {
	for _, l := range Libraries {
		if l.Name == "" || len(l.Files) == 0 || l.For == "" || l.Install == "" {
			t.Errorf("%+v has a gap", l)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&Error{Call: "cuMemAlloc_v2", What: "4096 bytes", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY",
			Text: "out of memory", Hint: hints[2]},
			"cuMemAlloc_v2 of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory: the GPU is out of memory, " +
				"which other processes may use too (see nvidia-smi)"},
		{&Error{Call: "cuEventRecord", Code: 400, Name: "CUDA_ERROR_INVALID_HANDLE", Text: "invalid resource handle"},
			"cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle"},
		{&OldError{Library: Library{Name: "NCCL", Install: "install a newer one"}, Path: "/lib/libnccl.so.2",
			Call: "ncclCommSplit"},
			"NCCL: /lib/libnccl.so.2 is too old, it has no ncclCommSplit: install a newer one"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("says\n%s\nwant\n%s", got, c.want)
		}
	}
	for code, want := range map[int]bool{2: false, 400: false, 700: true, 719: true} {
		if got := (&Error{Call: "cuStreamSynchronize", Code: code}).Lost(); got != want {
			t.Errorf("code %d: the context is lost: %v", code, got)
		}
	}
}
