package asm

import "syscall"

// askForTiles requests permission from Linux to use AMX's tiles, which the kernel saves only for processes
// that have requested them (Documentation/arch/x86/xstate.rst). It reports whether permission was granted.
func askForTiles() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // XSAVE component
	)
	_, _, failed := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return failed == 0
}
