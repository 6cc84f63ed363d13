package cuda

import (
	"fmt"
	"slices"
	"strings"
)

// MissingError reports a library that cannot be opened under any of its names.
type MissingError struct {
	Library Library
	Broken  []string // the loader's errors for files that exist but do not load
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: cannot find %s, needed for %s", e.Library.Name, strings.Join(e.Library.Files, ", "),
		e.Library.For)
	if len(e.Broken) > 0 {
		fmt.Fprintf(&b, "; files that exist but do not load: %s", strings.Join(e.Broken, "; "))
	}
	return b.String() + ": " + e.Library.Install
}

// OldError reports a library without a function that planc needs.
type OldError struct {
	Library Library
	Path    string // of the file
	Call    string // the missing function
}

func (e *OldError) Error() string {
	return fmt.Sprintf("%s: %s is too old, it has no %s: %s", e.Library.Name, e.Path, e.Call, e.Library.Install)
}

// Error reports a failed call of the driver or of a library.
type Error struct {
	Call string // function, such as cuMemAlloc_v2
	What string // arguments in words, such as "4096 bytes"; may be empty
	Code int    // the library's code
	Name string // name of the code, such as CUDA_ERROR_OUT_OF_MEMORY
	Text string // the library's description, such as out of memory
	Hint string // what to do, if known
}

// Elsewhere reports whether the cause is a process or a machine at the other end that is gone, which has a
// reason of its own.
func (e *Error) Elsewhere() bool { return e.Name == "ncclResult_t" && e.Code == 6 } // ncclRemoteError

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Call)
	if e.What != "" {
		fmt.Fprintf(&b, " of %s", e.What)
	}
	fmt.Fprintf(&b, ": %s (%d): %s", e.Name, e.Code, e.Text)
	if e.Hint != "" {
		fmt.Fprintf(&b, ": %s", e.Hint)
	}
	return b.String()
}

// Lost reports whether the error has destroyed the context: all later calls fail, and only a new process
// helps. These are the codes for which the driver's header says "the process must be terminated and
// relaunched".
func (e *Error) Lost() bool {
	lost := []int{214, 700, 702, 710, 714, 715, 716, 717, 718, 719}
	return strings.HasPrefix(e.Call, "cu") && slices.Contains(lost, e.Code)
}

// Late reports whether the error concerns work that was enqueued earlier, rather than the call that
// returned it.
func (e *Error) Late() bool { return e.Lost() || e.Call == collective }

// collective is the Call of an error that NCCL reports for a running collective.
const collective = "a collective"

// hints holds advice for driver codes that concern the machine rather than the program.
var hints = map[int]string{
	3:   "the driver is being unloaded",
	34:  "the libcuda.so.1 found is the toolkit's stub for linking: remove its folder, …/stubs, from LD_LIBRARY_PATH",
	100: "the driver sees no GPU: check CUDA_VISIBLE_DEVICES and nvidia-smi; start a container with access to the GPUs",
	802: "the machine's NVSwitch fabric is not up: start nvidia-fabricmanager",
	803: "the driver's library and its kernel module have different versions: restart the machine after the upgrade",
	804: "the libcuda found is a forward-compatibility one that does not support this GPU: remove its folder from " +
		"LD_LIBRARY_PATH",
	209: "the program has no kernels for this GPU's architecture",
	222: "the driver is older than the compiler that built the kernels: update the driver",
	2:   "the GPU is out of memory, which other processes may use too (see nvidia-smi)",
}
