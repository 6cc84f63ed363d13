package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/codegen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// UnknownPass is reported if --after does not name a pass.
//
// Example:
//
//	planc ir --after nosuch
const UnknownPass ir.Code = "UnknownPass"

// modelStage is the stage before the first pass; gemmsStage, the GEMMs with their fused ops, follows the last one.
const (
	modelStage = "model"
	gemmsStage = "gemms"
)

func irCommand(a *app) *cobra.Command {
	var flags jobFlags
	var after, picture string
	var all bool
	c := &cobra.Command{
		Use:   "ir [JOB] [--after PASS | --all | --picture FILE]",
		Short: "print the program after compiler passes, as txtar",
		Long: "ir prints the program after the last pass, after PASS, or after every pass. The output is a txtar " +
			"archive, so that you\n" +
			"can save it as a test. Stages: " + strings.Join(stages(), ", ") + ".\n" +
			"The stage gemms lists the GEMMs that do other ops in the same call on the cluster's devices: their " +
			"beta (C) operand\n" +
			"and their epilogue. With --picture it draws instead what each pipeline stage does in a step.",
		Example: "planc ir planc.yaml --after partition",
		Args:    oneJob,
		RunE: func(_ *cobra.Command, args []string) error {
			want, err := wantedStages(after, all)
			if err != nil {
				return err
			}
			drawn := flags.cmd.Flags().Changed("picture")
			if drawn && picture == "" {
				return inputErrorf(BadFlag, "",
					"--picture is empty; use --picture schedule.svg, or --picture - for text")
			}
			if drawn && (all || after != "") {
				return inputErrorf(BadFlag, "", "planc ir takes either --picture or --after and --all, not both")
			}
			if drawn {
				return printPicture(a, args, flags, picture)
			}
			return printIR(a, args, flags, want)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&after, "after", "", "print the program after `PASS`")
	c.Flags().BoolVar(&all, "all", false, "print the program after every pass")
	c.Flags().StringVar(&picture, "picture", "", "draw the pipeline schedule as SVG into `FILE`; - prints it as text")
	return c
}

// stages returns the names of all sections.
func stages() []string {
	return slices.Concat([]string{modelStage}, passes.Names(), []string{gemmsStage})
}

// oldStages maps former names of stages, which remain valid, to the present ones.
var oldStages = map[string]string{"eight": "fp8", "remake": "rematerialize", "products": gemmsStage}

// wantedStages returns the names of the sections to print.
func wantedStages(after string, all bool) ([]string, error) {
	names := stages()
	if name, ok := oldStages[after]; ok {
		after = name
	}
	switch {
	case all && after != "":
		return nil, inputErrorf(BadFlag, "", "planc ir takes either --after or --all, not both")
	case all:
		return names, nil
	case after == "":
		return names[len(names)-2:], nil
	case slices.Contains(names, after):
		return []string{after}, nil
	}
	return nil, inputErrorf(UnknownPass, ir.Nearest(after, names), "unknown stage %s; the stages are %s", after,
		strings.Join(names, ", "))
}

// printIR compiles the job without generating code, and prints the given stages. A stage that changed nothing is
// printed as "(unchanged)" if the stage before it is printed too.
func printIR(a *app, args []string, flags jobFlags, want []string) error {
	job, err := loadJob(a.Console, args, flags)
	if err != nil {
		return err
	}
	found, err := decidePlan(a, job, lockFlags{})
	if err != nil {
		return err
	}
	texts := map[string]string{}
	p, err := compileProgram(a.Console, found.job, found.Best.Plan, func(stage, text string) { texts[stage] = text })
	if err != nil {
		return err
	}
	texts[gemmsStage] = productsText(found.job, p)
	return a.Print(archive(want, texts))
}

// productsText lists the GEMMs that do other ops in the same call on the cluster's devices.
func productsText(j *loaded, p *ir.Program) string {
	on := codegen.GPU
	if j.Hardware.IsCPU() {
		on = codegen.CPU
	}
	text, err := codegen.Products(p, on)
	switch {
	case err != nil:
		return fmt.Sprintf("(none: %v)\n", err)
	case text == "":
		return "(none)\n"
	}
	return text
}

// printPicture compiles the job and draws its pipeline schedule.
func printPicture(a *app, args []string, flags jobFlags, file string) error {
	job, err := loadJob(a.Console, args, flags)
	if err != nil {
		return err
	}
	found, err := decidePlan(a, job, lockFlags{})
	if err != nil {
		return err
	}
	p, err := compileProgram(a.Console, found.job, found.Best.Plan, nil)
	if err != nil {
		return err
	}
	text, err := writePicture(p, file)
	if err != nil {
		return err
	}
	if text == "" {
		a.Notef("wrote    %s", shell.Slashed(file))
		return nil
	}
	return a.Print(text)
}

// writePicture draws the schedules into a file as SVG, or returns them as text for "-".
func writePicture(p *ir.Program, file string) (text string, err error) {
	pic, err := screen.NewPicture(p)
	if err != nil {
		return "", err
	}
	if file == "-" {
		return pic.Text(), nil
	}
	ok, err := fileHasPrefix(file, screen.SVGHead)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", inputErrorf(FileExists, "",
			"--picture %s is an existing file that is not an SVG, and is not overwritten; choose another name, or "+
				"remove it",
			file)
	}
	if _, err := writeWhole(file, []byte(pic.SVG())); err != nil {
		return "", fmt.Errorf("write the picture: %w", err)
	}
	return "", nil
}

// archive formats the given stages as txtar.
func archive(want []string, texts map[string]string) string {
	var b strings.Builder
	shown := ""
	for _, stage := range want {
		name := stage + ".ir"
		if stage != modelStage && stage != gemmsStage {
			name = "after/" + name
		}
		text := texts[stage]
		if text == shown {
			text = "(unchanged)\n"
		} else {
			shown = text
		}
		fmt.Fprintf(&b, "-- %s --\n%s", name, text)
	}
	return b.String()
}
