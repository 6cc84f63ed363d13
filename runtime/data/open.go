package data

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// openFile opens a regular file and returns its description. It refuses all other files without waiting for the writer
// of a FIFO, because samples are read at arbitrary positions of a file of known size.
func openFile(path string) (*os.File, os.FileInfo, error) {
	f, err := openAtOnce(path)
	if os.IsNotExist(err) {
		return nil, nil, inputf("there is no file %s", path)
	}
	if err != nil {
		// a socket, or a device without a driver
		if info, failed := os.Stat(path); failed == nil && !info.Mode().IsRegular() {
			return nil, nil, irregular(path, info.Mode())
		}
		return nil, nil, readError(path, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = readError(path, err)
	case !info.Mode().IsRegular():
		err = irregular(path, info.Mode())
	default:
		return f, info, nil
	}
	f.Close()
	return nil, nil, err
}

// irregular returns the error for a file that is not regular.
func irregular(path string, mode fs.FileMode) error {
	const advice = "data must be a regular file, because it is read at arbitrary positions"
	switch {
	case mode.IsDir():
		return inputf("%s is a folder; name its files, for example %s", path, filepath.Join(path, "*.bin"))
	case mode&fs.ModeNamedPipe != 0:
		return inputf("%s is a FIFO (a pipe), not a file: %s; write its output to a file first: cat %[1]s "+
			">data.txt", path, advice)
	case mode&fs.ModeDevice != 0:
		return inputf("%s is a device, not a file: %s; copy the data to a file first: head -c BYTES "+
			"%[1]s >data.txt", path, advice)
	case mode&fs.ModeSocket != 0:
		return inputf("%s is a socket, not a file: %s", path, advice)
	}
	return inputf("%s is not a regular file (%s): %s", path, fmt.Sprint(mode.Type()), advice)
}
