package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/gpu/measure"
)

// calibrateCPU measures this machine's CPU and writes its cluster file.
func calibrateCPU(a *app, m machine.Machine, out string) error {
	c, err := measureCPU(a, m)
	if err != nil {
		return err
	}
	machine.SaveCPU(m, c.ThisCPU(m)) // jobs on cpu are priced by the newest measurement
	text, summary := c.ClusterText(m), c.Screen(m)
	if out == "" {
		a.Notef("%s", strings.TrimSuffix(summary, "\n"))
		return a.Print(text)
	}
	if err := a.Print(summary); err != nil {
		return err
	}
	return writeNewFile(a, out, text, "planc plan --set "+shell.Word("cluster.node="+filePath(out)))
}

// measureCPU measures this machine's CPU.
func measureCPU(a *app, m machine.Machine) (c *machine.CPUMeasurement, err error) {
	err = a.RunWithNotice("measuring this CPU", func() (err error) { c, err = machine.MeasureCPU(m); return err })
	return c, err
}

// calibrateGPUs measures this machine's GPUs and writes its cluster file: that of detect with a measured block.
func calibrateGPUs(a *app, m machine.Machine, out string) error {
	c, box, err := describeGPUs(a, m)
	if err != nil {
		return err
	}
	measured, err := measureGPUs(a, c.GPU.Arch)
	if err != nil {
		return err
	}
	if len(measured.GPUs) != c.Node.Devices {
		a.Notef("note: the driver shows %d GPUs, which were measured, and nvidia-smi lists %d; the file describes the "+
			"measured ones", len(measured.GPUs), c.Node.Devices)
		c.Node.Devices = len(measured.GPUs)
	}
	f := machine.GPUFactors(c, measured)
	f.By = fmt.Sprintf("planc calibrate, %s: %d × %s, driver of CUDA %s, cuBLASLt %s%s",
		time.Now().Format(time.DateOnly), len(measured.GPUs), measured.GPUs[0], measured.CUDA, measured.BLAS,
		map[bool]string{true: ", NCCL " + measured.NCCL}[measured.NCCL != ""])
	text := machine.GPUClusterText(c, box.Driver) + machine.MeasuredBlock(f.By, f)
	if _, err := costmodel.ParseCluster("here.yaml", []byte(text)); err != nil {
		return fmt.Errorf("the measurement gives an invalid cluster file: %w", err)
	}
	summary := machine.GPUScreen(c, measured, f)
	if out == "" {
		a.Notef("%s", strings.TrimSuffix(summary, "\n"))
		return a.Print(text)
	}
	if err := a.Print(summary); err != nil {
		return err
	}
	return writeNewFile(a, out, text, "planc plan --set "+shell.Word("cluster.node="+filePath(out)))
}

// measureGPUs builds and runs the measuring program.
func measureGPUs(a *app, arch string) (*measure.Measurement, error) {
	files, r, err := machine.MeasuringProgram(arch)
	if err != nil {
		return nil, err
	}
	if err := compileKernels(a, r, files); err != nil {
		return nil, err
	}
	built, err := buildBinary(a, build.Request{Module: "planc.generated/measure",
		CUDA: cuda.Sources, Host: true}, files)
	if err != nil {
		return nil, err
	}
	ctx, stop := process.UntilSignal()
	defer stop()
	var m measure.Measurement
	err = a.RunWithNotice("measuring", func() error { return machine.RunMeasuring(ctx, built.Binary, &m) })
	return &m, err
}
