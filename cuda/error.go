package cuda

import (
	"fmt"
	"slices"
	"strings"
)

// MissingError reports a library that cannot be opened under any of its names.
type MissingError struct {
	Library Library
	Broken  []string // the loader's words about those that are there but do not load
}

func (e *MissingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: there is no %s, which is needed for %s", e.Library.Name, strings.Join(e.Library.Files, ", "),
		e.Library.For)
	if len(e.Broken) > 0 {
		fmt.Fprintf(&b, "; what is there does not load: %s", strings.Join(e.Broken, "; "))
	}
	return b.String() + ": " + e.Library.Install
}

// OldError reports a library that lacks a call that planc needs.
type OldError struct {
	Library Library
	Path    string // of the file
	Call    string // that is missing
}

func (e *OldError) Error() string {
	return fmt.Sprintf("%s: %s has no %s; it is too old: %s", e.Library.Name, e.Path, e.Call, e.Library.Install)
}

// Error is a call that the driver or a library refused.
type Error struct {
	Call string // cuMemAlloc_v2
	What string // what it was to do: "4096 bytes"; "" says no more than the call
	Code int    // the library's own
	Name string // CUDA_ERROR_OUT_OF_MEMORY
	Text string // out of memory
	Hint string // what to do about it, where that is known
}

// Elsewhere tells whether the error is that a process or a machine at the other end is gone, which has a reason of its
// own.
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

// Lost reports whether the error has taken the context with it: each later call fails alike, and only a new process
// helps. The codes are those that the driver's header calls "the process must be terminated and relaunched" for.
func (e *Error) Lost() bool {
	lost := []int{214, 700, 702, 710, 714, 715, 716, 717, 718, 719}
	return strings.HasPrefix(e.Call, "cu") && slices.Contains(lost, e.Code)
}

// Late reports whether the error is of work that was put on a stream some time before, rather than of the call that
// tells of it.
func (e *Error) Late() bool { return e.Lost() || e.Call == collective }

// collective is the call of what NCCL says went wrong in one that was begun.
const collective = "a collective"

// hints are what to do about codes of the driver that concern the machine, not the program.
var hints = map[int]string{
	3:   "the driver is being unloaded",
	34:  "the libcuda.so.1 found is the toolkit's stub for linking: take its folder, …/stubs, out of LD_LIBRARY_PATH",
	100: "the driver sees no GPU: look at CUDA_VISIBLE_DEVICES and nvidia-smi; in a container, start it with the GPUs",
	802: "the machine's NVSwitch fabric is not up: start nvidia-fabricmanager",
	803: "the driver's library and its kernel module are of different versions: restart the machine after the upgrade",
	804: "a forward-compatibility libcuda is found that this GPU is not supported by: take its folder out of " +
		"LD_LIBRARY_PATH",
	209: "the program holds no kernels for this GPU's architecture",
	222: "the driver is older than the compiler of the kernels: update the driver",
	2:   "the GPU's memory is taken, also by other processes (nvidia-smi shows them)",
}
