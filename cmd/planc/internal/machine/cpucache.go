package machine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/runtime/cpu"
)

// CPUKey identifies the CPU and the software for which a measurement is valid.
type CPUKey struct {
	CPU       string
	Cores     int
	ISA, Arch string
	CostModel int
}

// savedCPU is a measurement in the cache.
type savedCPU struct {
	Key CPUKey
	CPU costmodel.ThisCPU
}

// CPUKeyOf returns the key of a machine.
func CPUKeyOf(m Machine) CPUKey {
	return CPUKey{m.CPU, m.Cores, cpu.InUse().String(), runtime.GOARCH, costmodel.CostModel}
}

// cpuFile returns the path of the cached measurement of a CPU.
func cpuFile(k CPUKey) (string, error) {
	dir, err := build.MeasuredFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Append(nil, k))
	return filepath.Join(dir, fmt.Sprintf("cpu-%x.json", sum[:12])), nil
}

// CachedCPU reads a measurement from the cache; nil if there is no valid one.
func CachedCPU(k CPUKey) *costmodel.ThisCPU {
	file, err := cpuFile(k)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var saved savedCPU
	c := &saved.CPU
	isValid := json.Unmarshal(data, &saved) == nil && saved.Key == k
	for _, v := range []float64{c.Single, c.Double, float64(c.Memory), float64(c.Link), c.LatencyUS, c.Matrix,
		c.Overhead} {
		isValid = isValid && v > 0
	}
	if !isValid || c.Cores != k.Cores {
		return nil
	}
	return c
}

// saveResult is the file of a saved measurement, or the error.
type saveResult struct {
	File string
	Err  error
}

// SaveCPU writes a measurement to the cache atomically.
func SaveCPU(m Machine, c *costmodel.ThisCPU) saveResult {
	k := CPUKeyOf(m)
	file, err := cpuFile(k)
	if err != nil {
		return saveResult{Err: err}
	}
	data, err := json.MarshalIndent(savedCPU{k, *c}, "", "  ")
	if err != nil {
		panic("planc: a measurement cannot be encoded: " + err.Error())
	}
	partial, err := os.CreateTemp(filepath.Dir(file), ".cpu-*")
	if err != nil {
		return saveResult{Err: err}
	}
	_, err = partial.Write(append(data, '\n'))
	if closing := partial.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(partial.Name(), file)
	}
	if err != nil {
		_ = os.Remove(partial.Name())
	}
	return saveResult{file, err}
}
