package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/passes/validate"
	"github.com/planc-dev/planc/runtime/amount"
)

func (a *app) calibrateCommand() *cobra.Command {
	var flags jobFlags
	var from, out, target string
	c := &cobra.Command{
		Use:   "calibrate [--from FILE|RUN [JOB]] [-o FILE]",
		Short: "a cluster file as this machine, or your own runs, have it",
		Long: "calibrate measures this machine with the kernels and libraries that programs use, and writes a " +
			"cluster file. Nothing is\n" +
			"measured unasked, so that a plan follows from its job alone: name the file in the job to have it used.\n" +
			"\n" +
			"Of NVIDIA GPUs, all at once in a minute at most: matrix products and attention by shape, memory, the " +
			"way to the host,\n" +
			"launches, and NCCL by size and group; a program does it that planc builds, as planc compile does. Where " +
			"there is no GPU,\n" +
			"or with --target cpu, of the CPU in about a second.\n" +
			"\n" +
			"With --from it fits a few factors to measured steps: how fast matmuls, memory, links, network and " +
			"overhead are\n" +
			"against the catalogue's figures. What the runs do not identify stays as it is. --from is a table of " +
			"rows, as\n" +
			"planc validate takes them (planc help rows), of one kind of GPU; or the folder of a run of planc's " +
			"(metrics.jsonl), whose JOB,\n" +
			"planc.yaml if not named, says what ran. The file that it writes is a cluster file with a " +
			"measured block.\n" +
			"\n" +
			"It says what each row changed, and how well a fit to the others predicts it. A fit that predicts rows " +
			"which it\n" +
			"did not see worse than the figures as they were is not kept; of one row nothing is left to see, as it " +
			"then says.",
		Example: "planc calibrate -o here.yaml && planc plan --set cluster.node=here.yaml",
		Args:    oneJob,
		RunE: func(c *cobra.Command, args []string) error {
			if from == "" && len(args) > 0 {
				return inputErrorf(strict.NotYet, "",
					"planc calibrate measures this machine, whatever the job; a job (%s) goes with --from RUN", args[0])
			}
			if out != "" {
				if err := checkNewFile(out); err != nil {
					return err
				}
			}
			if from == "" {
				return a.calibrateMachine(target, out)
			}
			return a.calibrate(args, flags, from, out)
		},
	}
	c.Flags().StringVar(&from, "from", "", "a table of measured `ROWS`, or the folder of a run")
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE`, which must not be there yet")
	c.Flags().StringVar(&target, "target", "", "`PLATFORM` to measure: cpu, cuda; else cuda where there are GPUs")
	flags.register(c)
	return c
}

// calibrateMachine measures this machine's GPUs, or its CPU.
func (a *app) calibrateMachine(target, out string) error {
	m := inspectMachine(os.DirFS("/"))
	gpus, err := onGPUs(target, m)
	switch {
	case err != nil:
		return err
	case gpus:
		return a.calibrateGPUs(m, out)
	}
	return a.calibrateHere(m, out)
}

// calibration is what a fit is made of, and where its result goes.
type calibration struct {
	from    string
	rows    []calibrate.Observation
	skipped []string // rows that cannot be used, with the reason
	cluster *costmodel.Cluster
	file    []byte // the cluster's file as it is
}

func (a *app) calibrate(args []string, flags jobFlags, from, out string) error {
	q := &calibration{from: from}
	var err error
	if info, e := os.Stat(from); e == nil && info.IsDir() || strings.HasSuffix(from, ".jsonl") {
		err = a.observeRun(args, flags, q)
	} else {
		err = a.observeTable(q)
	}
	if err != nil {
		return err
	}
	var r *calibrate.Result
	if err := a.runWithNotice("fitting", func() (err error) {
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
		a.notef("%s", strings.TrimSuffix(q.screen(r), "\n"))
		return a.print(text)
	}
	if err := a.print(q.screen(r)); err != nil {
		return err
	}
	return a.writeNew(out, text, "planc plan --set "+shellWord("cluster.node="+filePath(out)))
}

// NothingMeasured is reported where there is no measured step to calibrate by.
//
// Example:
//
//	planc calibrate --from testdata/unpriced.csv
const NothingMeasured ir.Code = "NothingMeasured"

// observeTable reads rows of a table; they must be of one kind of GPU.
func (a *app) observeTable(q *calibration) error {
	data, err := a.read(q.from)
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
		return inputErrorf(NothingMeasured, "",
			"%s has no row that a step can be predicted of and was measured of%s; %s",
			q.from, first, columnsHelp)
	}
	if len(gpus) > 1 {
		return inputErrorf(NothingMeasured, "", "%s has rows of %s; a cluster file is of one kind: a table for each",
			q.from, strings.Join(slices.Sorted(maps.Keys(gpus)), ", "))
	}
	return q.useCatalogueFile()
}

// useCatalogueFile takes the file that the catalogue has for the rows' GPU.
func (q *calibration) useCatalogueFile() error {
	// The node that a row is priced on comes first; where its GPU stands in for another, the node that has that one.
	for _, name := range append([]string{q.cluster.Name}, costmodel.ClusterNames()...) {
		if clusterRowOf(name).GPU == q.cluster.GPU.Name {
			q.file = fmt.Appendf(nil, "base: %s\n", name)
			q.cluster.Name = name
			return nil
		}
	}
	return inputErrorf(NothingMeasured, "",
		"%s has rows of %s, of which the catalogue has no cluster to calibrate; planc clusters lists those "+
			"that it has", q.from, q.cluster.GPU.Name)
}

// text is the cluster's file with the measured block in the place of the one that it had.
func (q *calibration) text(r *calibrate.Result) (string, error) {
	m := q.cluster.Scaled(r.Measured).Measured
	var b strings.Builder
	b.WriteString(withoutBlock(string(q.file), "measured:"))
	kept := ""
	if r.Worse {
		kept = ", which was not kept"
	}
	checked := "which checks nothing"
	if len(r.Rows) > 1 {
		checked = percent(r.MedianError(stepLeftOut)) + " of rows left out of the fit"
	}
	fmt.Fprintf(&b, "measured:\n  by: %q\n",
		fmt.Sprintf("planc calibrate --from %s: %d %s; median error %s before, %s%s",
			q.from, len(r.Rows), plural(len(r.Rows), "row"), percent(r.MedianError(stepBefore)), checked, kept))
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
		return "", fmt.Errorf("a measured block cannot be added to the file of %s: %w", q.cluster.Name, err)
	}
	return text, nil
}

// withoutBlock is a YAML file without one key of its root.
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

func stepBefore(r calibrate.Row) float64  { return r.Before }
func stepAfter(r calibrate.Row) float64   { return r.After }
func stepLeftOut(r calibrate.Row) float64 { return r.Without }
