package meet

import (
	"errors"
	"fmt"
	"syscall"
)

// Limited is the error of a machine on which a process may not open as many files and connections as the launch needs.
type Limited struct{ Text string }

func (e *Limited) Error() string { return e.Text }

// spare is how many descriptors are left for files and libraries.
const spare = 32

// enough returns an error if the process's limit of descriptors is below one for each other process.
func enough(processes int) error {
	limit, open := descriptorLimit(), descriptorsOpen()
	if need := open + processes - 1 + spare; limit > 0 && need > limit {
		return &Limited{fmt.Sprintf("this process may open %d files and connections, and a launch of %d processes "+
			"needs about %d here: "+
			"raise the limit before starting it (ulimit -n %d)", limit, processes, need, need)}
	}
	return nil
}

// outOf returns the error for a call that found no descriptor left, nil for other errors.
func outOf(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return &Limited{fmt.Sprintf("this process has opened all %d files and connections that it may: raise the "+
			"limit before starting it (ulimit -n)", descriptorLimit())}
	case errors.Is(err, syscall.ENFILE):
		return &Limited{"this machine has as many files open as its kernel allows (sysctl fs.file-max)"}
	}
	return nil
}
