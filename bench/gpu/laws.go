package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// LawGroup is a plan on the GPU, preceded by the programs that it is compared with. golden/laws/gpucheck_test.go
// writes groups to laws.json.
type LawGroup struct {
	Name, Plan, Kinds string
	Ranks             int
	Cases             []LawCase
}

// LawCase is a program of the module laws.
type LawCase struct {
	ID          string
	GPU         bool
	Type        string  // compute type
	Loss, Param float64 // bounds; negative if yardsticks decide, or nothing does
	Yard        bool    // a yardstick in 16 bits
	Rounds      bool    // rounds to 16 bits
	Arena       int64
}

// verdict is a line that the module prints.
type verdict struct {
	ID, Err, Worst                            string
	Losses, Norms, Valid, Grad, Param, Copies float64
	Steps                                     int
	Arena                                     int64
}

func (v *verdict) scalars() float64 { return max(v.Losses, v.Norms, v.Valid) }

// narrowFactor times the largest yardstick error is the bound of a plan in 16 bits, as in golden/laws/narrow_test.go.
const narrowFactor = 4

// broken returns why a group has no results to judge, "" if it has.
func (g *LawGroup) broken(verdicts []verdict) string {
	if len(verdicts) != len(g.Cases) {
		return fmt.Sprintf("%d of %d programs ran", len(verdicts), len(g.Cases))
	}
	for i, c := range g.Cases {
		switch v := &verdicts[i]; {
		case v.ID != c.ID:
			return fmt.Sprintf("program %d is %s, want %s", i, v.ID, c.ID)
		case v.Err != "":
			return c.ID + ": " + v.Err
		}
	}
	return ""
}

// judge compares a group's CUDA programs with their bounds; "" means that all are within.
func (g *LawGroup) judge(verdicts []verdict) (why string, scalars, grads float64) {
	var yard verdict
	for i, c := range g.Cases {
		if v := &verdicts[i]; c.Yard {
			yard.Losses, yard.Grad = max(yard.Losses, narrowFactor*v.scalars()), max(yard.Grad, narrowFactor*v.Grad)
		}
	}
	for i, c := range g.Cases {
		v := &verdicts[i]
		if !c.GPU {
			continue
		}
		scalars, grads = v.scalars(), v.Grad
		loss, grad := c.Loss, c.Loss
		if c.Rounds {
			loss, grad = yard.Losses, yard.Grad
		}
		if !(scalars <= loss) || !(grads <= grad) || c.Param >= 0 && !(v.Param <= c.Param) {
			why += fmt.Sprintf("scalars %.3g, gradients %.3g, parameters %.3g off, of %.3g, %.3g, %.3g; worst %s; ",
				scalars, grads, v.Param, loss, grad, c.Param, v.Worst)
		}
		if v.Copies != 0 || v.Steps != 3 || v.Arena != c.Arena {
			why += fmt.Sprintf("copies %.3g apart, %d steps, arena %d of %d; ", v.Copies, v.Steps, v.Arena, c.Arena)
		}
	}
	return why, scalars, grads
}

// atOnce is the number of groups that run concurrently; their work is mostly on the host.
const atOnce = 4

// laws runs every group with ranks that share the GPU, and watches their arenas for law 3.
func laws(ctx context.Context, b *bench, r *Result) error {
	return b.laws(ctx, r, atOnce, []string{"PLANC_SHARE_GPU=1"}, func(*LawGroup) bool { return true })
}

// lawsByNCCL runs the groups of two ranks with NCCL between them, which NCCL 2.30 supports on one GPU.
func lawsByNCCL(ctx context.Context, b *bench, r *Result) error {
	return b.laws(ctx, r, 1, []string{"PLANC_SHARE_GPU=nccl", "NCCL_MULTI_RANK_GPU_ENABLE=1", "NCCL_MAX_CTAS=4"},
		func(g *LawGroup) bool {
			return g.Ranks == 2
		})
}

// groupLimit is the time limit of a group, whose ranks may wait for each other forever.
const groupLimit = 45 * time.Second

// lawRun is the result of a group. Why says what is wrong with its results, Broken why there are none.
type lawRun struct {
	Group          *LawGroup
	Why, Broken    string
	Scalars, Grads float64
	Verdicts       []verdict
	Arenas         []arenaUse
	ran            bool
}

func (b *bench) laws(ctx context.Context, r *Result, n int, env []string, take func(*LawGroup) bool) error {
	text, err := os.ReadFile(b.program("laws.json"))
	if err != nil {
		return err
	}
	var groups []*LawGroup
	if err := json.Unmarshal(text, &groups); err != nil {
		return fmt.Errorf("laws.json: %w", err)
	}
	groups = slices.DeleteFunc(groups, func(g *LawGroup) bool { return !take(g) })
	runs := make([]lawRun, len(groups))
	slots := make(chan struct{}, n)
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			runs[i].Group = g
			if ctx.Err() == nil {
				runs[i].run(ctx, b, env)
			}
		})
	}
	all.Wait()
	b.runs = runs
	return tabulate(r, runs)
}

// run runs the group's programs in another process.
func (l *lawRun) run(ctx context.Context, b *bench, env []string) {
	own, stop := context.WithTimeout(ctx, groupLimit)
	defer stop()
	arenas, remove, err := arenaFile()
	if err != nil {
		l.Broken = err.Error()
		return
	}
	defer remove()
	out, err := b.output(own, append([]string{checkArena + "=" + arenas}, env...), b.program("laws"), l.Group.Name)
	l.ran, l.Arenas = ctx.Err() == nil, readArenas(arenas)
	for line := range bytes.Lines(out) {
		var v verdict
		if json.Unmarshal(line, &v) == nil {
			l.Verdicts = append(l.Verdicts, v)
		}
	}
	l.Broken = l.Group.broken(l.Verdicts)
	if err != nil {
		l.Broken += "; " + err.Error()
	}
	if l.Broken == "" {
		l.Why, l.Scalars, l.Grads = l.Group.judge(l.Verdicts)
	}
}

// tell writes the table, failures first.
func tabulate(r *Result, runs []lawRun) error {
	r.Raw, r.Columns = runs, []string{"plan", "type", "ranks", "error of scalars", "error of gradients", ""}
	bad, broken := 0, 0
	for _, sound := range []bool{false, true} {
		for _, l := range runs {
			if !l.ran || (l.Why+l.Broken == "") != sound {
				continue
			}
			last := l.Group.Cases[len(l.Group.Cases)-1]
			r.row(l.Group.Plan, last.Type, fmt.Sprint(l.Group.Ranks), fmt.Sprintf("%.2g", l.Scalars),
				fmt.Sprintf("%.2g", l.Grads), tail(l.Why+l.Broken, 300))
			if l.Why != "" {
				bad++
			}
			if l.Broken != "" {
				broken++
			}
		}
	}
	ran := len(r.Rows) - broken
	r.note("%d plans of %d ran, %d exceed their bound", ran, len(runs), bad)
	switch {
	case bad > 0:
		return faultf("%d of %d plans do not train to the results of one rank", bad, ran)
	case ran < len(runs):
		return fmt.Errorf("%d of %d plans ran to their end in time", ran, len(runs))
	}
	return nil
}
