// Command gogenerate trains a small model on batches that it makes itself. The training code in package adder is
// generated from adder.yaml; this program feeds it, reads each step, and stops when the model can add.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"example.com/gogenerate/adder"
	rt "github.com/planc-dev/planc/runtime"
)

//go:generate go tool planc gen -o adder adder.yaml

// enough is the loss at which training ends: every digit of a sum is all but sure.
const enough = 0.02

func main() {
	steps := flag.Int("steps", 600, "the last step")
	dir := flag.String("dir", "runs/adder", "folder of metrics and checkpoints")
	flag.Parse()
	if err := train(*steps, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "gogenerate:", err)
		code := rt.ExitFailed
		if exit := (*rt.ExitError)(nil); errors.As(err, &exit) {
			code = exit.Code
		}
		os.Exit(code)
	}
}

// train runs the generated program.
func train(steps int, dir string) error {
	fmt.Printf("plan %s, decided for %s\n", adder.Plan.Text, adder.Plan.Cluster)
	result, err := adder.Run(context.Background(),
		rt.Dir(dir), rt.Resume("never"), rt.Set("train.steps", steps),
		rt.Data(sums{}), rt.OnStep(watch), rt.Logger(slog.New(slog.DiscardHandler)))
	if exit := (*rt.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.Code == rt.ExitOnRequest) {
		return err
	}
	fmt.Printf("loss %.3f at step %d, %.3f after %d steps\n", result.FirstLoss, result.FirstStep, result.Loss,
		result.Steps)
	return nil
}

// watch sees each step.
func watch(s rt.Step) error {
	if s.Step%100 == 0 {
		fmt.Printf("step %4d  loss %.3f\n", s.Step, s.Loss)
	}
	if s.Loss < enough {
		return rt.ErrStop
	}
	return nil
}
