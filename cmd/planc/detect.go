package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// FileExists is reported for a file that a command would write, but that exists already.
//
// Example:
//
//	planc init ../../examples/opticks
const FileExists ir.Code = "FileExists"

func detectCommand(a *app) *cobra.Command {
	var out, target string
	c := &cobra.Command{
		Use:   "detect [-o FILE]",
		Short: "write a cluster file for this machine",
		Long: `detect prints a cluster file for this machine: its NVIDIA GPUs, how they are connected and its network ports,
as nvidia-smi and the system report them, with rates from the catalogue. Without a GPU, or with --target cpu, it
describes the CPU. The source of each figure says what is assumed. Nothing is measured; planc calibrate does that. The
bf16 rate of a CPU is not assumed, because it is below the f32 rate on some CPUs and several times that rate on
others: until it is measured, bf16 matmuls are priced like f32 matmuls.`,
		Example: "planc detect -o here.yaml && planc plan --set cluster.node=here.yaml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := describeMachine(a.Console, machine.Inspect(os.DirFS("/")), target)
			if err != nil {
				return err
			}
			if out == "" {
				return a.Print(text)
			}
			return writeNewFile(a.Console, out, text, "planc plan --set "+shell.Quote("cluster.node="+filePath(out)))
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write to the new `FILE` (default: standard output)")
	c.Flags().StringVar(&target, "target", "", "`PLATFORM` to describe: cpu or cuda (default: cuda if there are GPUs)")
	return c
}

// onGPUs reports whether a command is about this machine's GPUs: by --target, or by default if there are any.
func onGPUs(target string, m machine.Machine) (bool, error) {
	if target == "" {
		return len(m.GPUs) > 0, nil
	}
	on, err := targetNamed(target)
	return on == codegen.GPU, err
}

// describeMachine returns the cluster file of this machine's GPUs or of its CPU, by the target.
func describeMachine(ui *console.Console, m machine.Machine, target string) (string, error) {
	gpus, err := onGPUs(target, m)
	if err != nil {
		return "", err
	}
	if !gpus {
		return machine.CPUClusterText(m, nil), nil
	}
	c, b, err := describeGPUs(ui, m)
	if err != nil {
		return "", err
	}
	return machine.GPUClusterText(c, b.Driver), nil
}

// describeGPUs returns this machine's GPUs as a cluster, and their inventory.
func describeGPUs(ui *console.Console, m machine.Machine) (*costmodel.Cluster, machine.GPUInventory, error) {
	b, err := machine.InspectGPUs(os.DirFS("/"), m, machine.RunSystem)
	if err == nil {
		b.KeepVisible(os.Getenv("CUDA_VISIBLE_DEVICES"))
		if len(b.GPUs) == 0 {
			err = errors.New("no NVIDIA GPU is available to programs here: check nvidia-smi and " +
				"CUDA_VISIBLE_DEVICES, or use --target cpu for the CPU")
		}
	}
	if err != nil {
		return nil, b, err
	}
	for i, g := range b.GPUs {
		if g.MIG {
			ui.Notef("note: GPU %d is divided into MIG instances; the file describes whole GPUs", i)
		}
	}
	c, err := machine.ClusterOfGPUs(m, b)
	return c, b, err
}

// filePath returns a path in a form that a job reads as a file and not as a catalogue name.
func filePath(name string) string {
	if costmodel.IsFile(name) {
		return name
	}
	return "./" + name
}

// writeNewFile writes a new file and prints the next command. It does not overwrite an existing file.
func writeNewFile(ui *console.Console, name, text, next string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return newFileError(name, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("%s cannot be written: %w", name, err), os.Remove(name))
	}
	ui.Notef("wrote    %s", filepath.ToSlash(name))
	if next != "" {
		ui.Notef("next     %s", next)
	}
	return nil
}

// newFileError returns the error of creating a new file.
func newFileError(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return inputErrorf(FileExists, "", "%s exists already and is not overwritten; remove it, or choose another "+
			"name", name)
	}
	return fmt.Errorf("%s cannot be written: %w", name, errors.Unwrap(err))
}

// checkNewFile checks before long work that writeNew can create the file: it does not exist, but its folder does.
func checkNewFile(name string) error {
	if _, err := os.Lstat(name); err == nil {
		return newFileError(name, fs.ErrExist)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return newFileError(name, err)
	}
	return nil
}
