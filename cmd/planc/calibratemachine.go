package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/cmd/planc/internal/process"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/gpu/measure"
)

// calibrateCPU measures this machine's CPU and writes its cluster file.
func calibrateCPU(ui *console.Console, m machine.Machine, out string) error {
	c, err := measureCPU(ui, m)
	if err != nil {
		return err
	}
	machine.SaveCPU(m, c.ThisCPU(m)) // jobs on cpu are priced by the newest measurement
	text, summary := c.ClusterText(m), c.Screen(m)
	if out == "" {
		ui.Notef("%s", strings.TrimSuffix(summary, "\n"))
		return ui.Print(text)
	}
	if err := ui.Print(summary); err != nil {
		return err
	}
	return writeNewFile(ui, out, text, "planc plan --set "+shell.Quote("cluster.node="+filePath(out)))
}

// measureCPU measures this machine's CPU.
func measureCPU(ui *console.Console, m machine.Machine) (c *machine.CPUMeasurement, err error) {
	err = ui.RunWithNotice("measuring this CPU", func() (err error) { c, err = machine.MeasureCPU(m); return err })
	return c, err
}

// calibrateGPUs measures this machine's GPUs and writes its cluster file: that of detect with a measured block.
func calibrateGPUs(ui *console.Console, m machine.Machine, out string) error {
	c, box, err := describeGPUs(ui, m)
	if err != nil {
		return err
	}
	measured, err := measureGPUs(ui, c.GPU.Arch)
	if err != nil {
		return err
	}
	if len(measured.GPUs) != c.Node.Devices {
		ui.Notef("note: the driver shows %d GPUs, which were measured, and nvidia-smi lists %d; the file describes "+
			"the measured ones", len(measured.GPUs), c.Node.Devices)
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
		ui.Notef("%s", strings.TrimSuffix(summary, "\n"))
		return ui.Print(text)
	}
	if err := ui.Print(summary); err != nil {
		return err
	}
	return writeNewFile(ui, out, text, "planc plan --set "+shell.Quote("cluster.node="+filePath(out)))
}

// measureGPUs builds and runs the measuring program.
func measureGPUs(ui *console.Console, arch string) (*measure.Measurement, error) {
	files, r, err := machine.MeasuringProgram(arch)
	if err != nil {
		return nil, err
	}
	if err := compileKernels(ui, r, files); err != nil {
		return nil, err
	}
	built, err := buildBinary(ui, build.Request{Module: "planc.generated/measure",
		CUDA: cuda.Sources, Host: true}, files)
	if err != nil {
		return nil, err
	}
	ctx, stop := process.UntilSignal()
	defer stop()
	var m measure.Measurement
	err = ui.RunWithNotice("measuring", func() error { return machine.RunMeasuring(ctx, built.Binary, &m) })
	return &m, err
}
