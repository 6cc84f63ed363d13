//go:build unix

package driver

import "syscall"

// reserve allocates bytes and frees them again. A system that does not overcommit memory then returns an error here,
// where Go would end the process.
func reserve(bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	return syscall.Munmap(b)
}
