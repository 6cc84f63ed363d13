package meet

import (
	"errors"
	"fmt"
	"syscall"
)

// Limited is the error for a process that may not open as many files and connections as the launch needs.
type Limited struct{ Text string }

func (e *Limited) Error() string { return e.Text }

// spareDescriptors is the number of descriptors reserved for files and libraries.
const spareDescriptors = 32

// checkDescriptors returns an error if the process's descriptor limit is too low for a connection to each other
// process.
func checkDescriptors(processes int) error {
	limit, open := descriptorLimit(), descriptorsOpen()
	if need := open + processes - 1 + spareDescriptors; limit > 0 && need > limit {
		return &Limited{fmt.Sprintf("this process may open %d files and connections, and a launch of %d processes "+
			"needs about %d: "+
			"raise the limit before starting it (ulimit -n %d)", limit, processes, need, need)}
	}
	return nil
}

// descriptorError returns the error for a call that failed because no descriptor was left; nil for other errors.
func descriptorError(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return &Limited{fmt.Sprintf("this process has opened all %d files and connections that it may: raise the "+
			"limit before starting it (ulimit -n)", descriptorLimit())}
	case errors.Is(err, syscall.ENFILE):
		return &Limited{"this machine has as many files open as its kernel allows (sysctl fs.file-max)"}
	}
	return nil
}
