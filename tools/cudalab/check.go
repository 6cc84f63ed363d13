package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"text/tabwriter"
)

// check runs the tests of the kernels on the GPU, those that match a regular expression if it is not empty. It prints
// the largest error of each result relative to its bound, and the output of the tests if one fails.
func check(w io.Writer, dir, tests string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if tests == "" {
		tests = "."
	}
	cmd := exec.Command(filepath.Join(dir, "kernels.test"), "-test.v", "-test.run", tests, "-test.skip",
		"Mutations|Nvcc", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), "PLANC_EMULATE=must", "PLANC_KERNEL_SERVER="+self+"\nserve\n"+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the kernels' tests: %w", err)
	}
	errors, ran, failed := judge(w, out)
	if err := cmd.Wait(); err != nil || len(failed) > 0 {
		return fmt.Errorf("%d of %d tests failed: %q (%v)", len(failed), ran, failed, err)
	}
	if len(errors) == 0 {
		return fmt.Errorf("no test compared a kernel: TEST must match a test of cuda/kernels, such as TestNorms")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "test\tcomparisons\tlargest error / bound")
	for _, e := range errors {
		fmt.Fprintf(table, "%s\t%d\t%.3g\n", e.test, e.count, e.worst)
	}
	fmt.Fprintf(table, "all %d tests passed\n", ran)
	return table.Flush()
}

// compared is the largest error of a test's comparisons.
type compared struct {
	test  string
	count int
	worst float64 // relative to the bound
}

var (
	testBegins = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +([^\s/]+)`)
	testEnds   = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+)`)
	passes     = regexp.MustCompile(`^(?: *--- PASS: |PASS$|=== PAUSE)`)
	errorLine  = regexp.MustCompile(`: largest error (\S+) of its bound$`)
)

// judge reads the output of tests. It prints what does not belong to a test that passes.
func judge(w io.Writer, in io.Reader) (errors []compared, ran int, failed []string) {
	test := ""
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := testBegins.FindStringSubmatch(line); m != nil {
			test = m[1]
			continue
		}
		if m := testEnds.FindStringSubmatch(line); m != nil {
			if m[1] != "SKIP" {
				ran++
			}
			if m[1] == "FAIL" {
				failed = append(failed, m[2])
			}
			continue
		}
		m := errorLine.FindStringSubmatch(line)
		if m == nil {
			if !passes.MatchString(line) {
				fmt.Fprintln(w, line)
			}
			continue
		}
		worst, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(errors, func(c compared) bool { return c.test == test })
		if i < 0 {
			i, errors = len(errors), append(errors, compared{test: test})
		}
		errors[i].count++
		errors[i].worst = max(errors[i].worst, worst)
	}
	return errors, ran, failed
}
