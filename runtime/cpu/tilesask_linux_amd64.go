package cpu

import "syscall"

// askForTiles asks Linux to let this process use AMX's tiles, which it keeps for no thread that has not asked
// (Documentation/arch/x86/xstate.rst); it tells whether it may.
func askForTiles() bool {
	const (
		requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
		tileData          = 18     // of the components of XSAVE
	)
	_, _, failed := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return failed == 0
}
