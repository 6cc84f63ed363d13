package sass

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// header is the second line of a table of limits. The first line names the compiler.
const header = "kernel\tnarrow\tlocal\tloop\tunit"

// Format writes a table of limits that equal the counts.
func Format(compiler string, counts []Counts) string {
	sorted := slices.Clone(counts)
	slices.SortFunc(sorted, func(a, b Counts) int { return strings.Compare(a.Kernel, b.Kernel) })
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s\n", compiler, header)
	for _, c := range sorted {
		fmt.Fprintf(&b, "%s\t%d\t%d\t%d\t%s\n", c.Kernel, c.Narrow, c.Local, c.Loop, c.Unit)
	}
	return b.String()
}

// Limits reads a table of limits.
func Limits(text string) (compiler string, limits []Counts, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || !strings.HasPrefix(lines[0], "# ") || lines[1] != header {
		return "", nil, fmt.Errorf("line 1: want \"# COMPILER\" and %q", header)
	}
	for n, line := range lines[2:] {
		c, err := parseLimit(line)
		if err != nil {
			return "", nil, fmt.Errorf("line %d: %w", n+3, err)
		}
		limits = append(limits, c)
	}
	return strings.TrimPrefix(lines[0], "# "), limits, nil
}

// parseLimit reads a row of a table.
func parseLimit(line string) (c Counts, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 {
		return c, fmt.Errorf("%d columns, want 5", len(fields))
	}
	c.Kernel, c.Unit = fields[0], fields[4]
	for i, to := range []*int{&c.Narrow, &c.Local, &c.Loop} {
		*to, err = strconv.Atoi(fields[1+i])
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// Check compares counts with their limits and returns what exceeds them, and kernels that are in only one of both.
func Check(limits, counts []Counts) (problems []string) {
	byName := map[string]Counts{}
	for _, l := range limits {
		byName[l.Kernel] = l
	}
	for _, c := range counts {
		l, found := byName[c.Kernel]
		delete(byName, c.Kernel)
		if !found {
			problems = append(problems, c.Kernel+": the table has no limits for it")
			continue
		}
		problems = append(problems, exceeded(l, c)...)
	}
	for name := range byName {
		problems = append(problems, name+": the table has limits, but there is no such kernel")
	}
	slices.Sort(problems)
	return problems
}

// HoldFile compares counts with the table in a file, or writes that file if update is true. skip says why the table
// does not apply: its limits are for another compiler.
func HoldFile(path, compiler string, counts []Counts, update bool) (problems []string, skip string, err error) {
	if update {
		return nil, "", os.WriteFile(path, []byte(Format(compiler, counts)), 0o644)
	}
	table, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	measured, limits, err := Limits(string(table))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	if measured != compiler {
		return nil, fmt.Sprintf("%s: its limits are for %s, this is %s", path, measured, compiler), nil
	}
	return Check(limits, counts), "", nil
}

// exceeded compares a kernel's counts with its limits.
func exceeded(limit, c Counts) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, c.Kernel+": "+fmt.Sprintf(format, args...))
	}
	if c.Narrow > limit.Narrow {
		add("%d 2-byte stores in loops over packs, allowed: %d", c.Narrow, limit.Narrow)
	}
	if c.Local > limit.Local {
		add("%d accesses to spilled registers, allowed: %d", c.Local, limit.Local)
	}
	if c.Unit != limit.Unit {
		add("its inner loop is measured per %s, the limit is per %s", c.Unit, limit.Unit)
	} else if c.Loop > limit.Loop {
		add("%d instructions in inner loops per %s, allowed: %d", c.Loop, c.Unit, limit.Loop)
	}
	return problems
}
