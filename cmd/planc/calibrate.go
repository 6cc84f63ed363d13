package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/machine"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/passes/validate"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

func calibrateCommand(a *app) *cobra.Command {
	var flags jobFlags
	var from, out, target string
	c := &cobra.Command{
		Use:   "calibrate [--from FILE|RUN [JOB]] [-o FILE]",
		Short: "write a cluster file from measurements of this machine or of runs",
		Long: `calibrate measures this machine with the kernels and libraries that programs use, and writes a cluster file.
Plans use the measurement only if the job names the file, so that a plan depends only on its job.

On NVIDIA GPUs it measures, on all GPUs at once and in at most a minute: matmuls and attention by shape, memory
bandwidth, host copies, launch latency, and NCCL by message size and group. It builds a program for this, as planc
compile does. Without a GPU, or with --target cpu, it measures the CPU in about a second.

With --from it fits a few factors to measured steps: how fast matmuls, memory, links, network and overhead are,
relative to the catalogue's figures. Factors that the runs do not determine stay unchanged. --from is a table of runs
on one kind of GPU, in the format of planc validate (planc help rows), or the folder of a run of planc
(metrics.jsonl), whose JOB (default planc.yaml) describes what ran. The result is a cluster file with a measured
block.

It prints what each run changed, and how well a fit to the other runs predicts it (cross-validation). A fit that
predicts held-out runs worse than the original figures is rejected. One run alone cannot be cross-validated; calibrate
then says so.`,
		Example: "planc calibrate -o here.yaml && planc plan --set cluster.node=here.yaml",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			if from == "" && len(args) > 0 {
				return inputErrorf(strict.NotYet, "",
					"without --from, planc calibrate measures this machine and takes no job (%s); to calibrate from "+
						"a run of the job, add --from RUN", args[0])
			}
			if out != "" {
				if err := checkNewFile(out); err != nil {
					return err
				}
			}
			if from == "" {
				return calibrateMachine(a.Console, target, out)
			}
			return calibrateFrom(a, args, flags, from, out)
		},
	}
	c.Flags().StringVar(&from, "from", "", "calibrate from `ROWS`: a table of measured runs, or the folder of a run")
	c.Flags().StringVarP(&out, "output", "o", "", "write to the new `FILE` (default: standard output)")
	c.Flags().StringVar(&target, "target", "", "`PLATFORM` to measure: cpu or cuda (default: cuda if there are GPUs)")
	flags.register(c)
	return c
}

// calibrateMachine measures this machine's GPUs, or its CPU.
func calibrateMachine(ui *console.Console, target, out string) error {
	m := machine.Inspect(os.DirFS("/"))
	gpus, err := onGPUs(target, m)
	switch {
	case err != nil:
		return err
	case gpus:
		return calibrateGPUs(ui, m, out)
	}
	return calibrateCPU(ui, m, out)
}

// calibration holds the inputs of a fit, and the cluster file that it changes.
type calibration struct {
	from    string
	rows    []calibrate.Observation
	skipped []string // rows that cannot be used, with the reason
	cluster *costmodel.Cluster
	file    []byte // the original cluster file
}

func calibrateFrom(a *app, args []string, flags jobFlags, from, out string) error {
	q := &calibration{from: from}
	var err error
	if info, e := os.Stat(from); e == nil && info.IsDir() || strings.HasSuffix(from, ".jsonl") {
		err = observeRun(a, args, flags, q)
	} else {
		err = observeTable(a.Console, q)
	}
	if err != nil {
		return err
	}
	var r *calibrate.Result
	if err := a.RunWithNotice("fitting", func() (err error) {
		r, err = calibrate.Fit(q.rows)
		return err
	}); err != nil {
		return err
	}
	text, err := q.text(r)
	if err != nil {
		return err
	}
	if out == "" {
		a.Notef("%s", strings.TrimSuffix(screen.Calibration(r, q.cluster, q.skipped), "\n"))
		return a.Print(text)
	}
	if err := a.Print(screen.Calibration(r, q.cluster, q.skipped)); err != nil {
		return err
	}
	return writeNewFile(a.Console, out, text, "planc plan --set "+shell.Quote("cluster.node="+filePath(out)))
}

// NothingMeasured is reported if there is no measured step to calibrate from.
//
// Example:
//
//	planc calibrate --from testdata/unpriced.csv
const NothingMeasured ir.Code = "NothingMeasured"

// observeTable reads the rows of a table, which must be runs on one kind of GPU.
func observeTable(ui *console.Console, q *calibration) error {
	data, err := ui.Read(q.from)
	if err != nil {
		return ir.Diags{{Pos: ir.Pos{File: q.from}, Code: spec.NoFile, Msg: fmt.Sprintf("the table cannot be read: %v",
			ir.FileReason(err))}}.Err()
	}
	rows, err := validate.Parse(q.from, data)
	if err != nil {
		return err
	}
	asker := validate.NewAsker()
	gpus := map[string]int{}
	for i := range rows {
		r := &rows[i]
		asked, err := asker.Question(r)
		switch {
		case err == nil && r.StepS() == 0:
			q.skipped = append(q.skipped, fmt.Sprintf("row %d: no time was measured", r.Number))
		case err != nil:
			q.skipped = append(q.skipped, fmt.Sprintf("row %d: %v", r.Number, err))
		default:
			q.cluster = asked.Problem.Cluster
			gpus[q.cluster.GPU.Name]++
			q.rows = append(q.rows, calibrate.Observation{Name: fmt.Sprintf("row %d", r.Number),
				Problem: asked.Problem, Plan: asked.Plan, StepS: r.StepS()})
		}
	}
	if len(q.rows) == 0 {
		first := ""
		if len(q.skipped) > 0 {
			first = "; " + q.skipped[0]
		}
		return inputErrorf(NothingMeasured, "", "%s has no row with a measured step that can be predicted%s; %s",
			q.from, first, columnsHelp)
	}
	if len(gpus) > 1 {
		return inputErrorf(NothingMeasured, "",
			"%s has rows of %s; a cluster file describes one kind of GPU: use one table per kind",
			q.from, strings.Join(slices.Sorted(maps.Keys(gpus)), ", "))
	}
	return q.useCatalogueFile()
}

// useCatalogueFile sets the cluster file to the catalogue's file for the rows' GPU.
func (q *calibration) useCatalogueFile() error {
	// The node on which a row is priced comes first. If its GPU replaces another one, use the node that has that one.
	for _, name := range append([]string{q.cluster.Name}, costmodel.ClusterNames()...) {
		if catalogueRow(name).GPU == q.cluster.GPU.Name {
			q.file = fmt.Appendf(nil, "base: %s\n", name)
			q.cluster.Name = name
			return nil
		}
	}
	return inputErrorf(NothingMeasured, "",
		"%s has rows of %s, and the catalogue has no cluster with this GPU; planc clusters lists its clusters",
		q.from, q.cluster.GPU.Name)
}

// text returns the cluster file with the new measured block, which replaces an existing one.
func (q *calibration) text(r *calibrate.Result) (string, error) {
	m := q.cluster.Scaled(r.Measured).Measured
	var b strings.Builder
	b.WriteString(withoutBlock(string(q.file), "measured:"))
	verdict := ""
	if r.Worse {
		verdict = "; the fit was rejected"
	}
	checked := "not cross-validated"
	if len(r.Rows) > 1 {
		checked = quantity.Percent(r.MedianError(calibrate.HeldOut)) + " for held-out rows"
	}
	fmt.Fprintf(&b, "measured:\n  by: %q\n",
		fmt.Sprintf("planc calibrate --from %s: %d %s; median error %s before, %s%s",
			q.from, len(r.Rows), layout.Plural(len(r.Rows), "row"), quantity.Percent(r.MedianError(calibrate.Before)),
			checked, verdict))
	for _, key := range costmodel.MeasuredKeys {
		if v := *m.Factor(key); v != 1 {
			fmt.Fprintf(&b, "  %s: %s\n", key, amount.Digits(v, 3))
		}
	}
	for _, key := range costmodel.MeasuredAlone {
		if v := *m.Factor(key); v != 0 {
			fmt.Fprintf(&b, "  %s: %s\n", key, amount.Digits(v, 3))
		}
	}
	text := b.String()
	if _, err := costmodel.ParseCluster(q.cluster.Name+".yaml", []byte(text)); err != nil {
		return "", fmt.Errorf("cannot add a measured block to the file of %s: %w", q.cluster.Name, err)
	}
	return text, nil
}

// withoutBlock returns a YAML file without one key of its root mapping.
func withoutBlock(text, key string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if line[0] != ' ' && line[0] != '#' && line[0] != '\n' {
			inside = strings.HasPrefix(line, key)
		}
		if !inside {
			b.WriteString(line)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
