package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/ckpttools"
	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/ckpt"
)

func checkpointCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "checkpoint ls|show|verify|diff|export|prune DIR...",
		Short: "list, verify, compare, export and remove the checkpoints of a run",
		Long: `checkpoint works on the checkpoints of a run. DIR is the folder of a run, its folder checkpoints/, or one
checkpoint such as checkpoints/step-00000042.`,
		Example: "planc checkpoint ls runs/opticks\nplanc checkpoint verify runs/opticks\n" +
			"planc checkpoint export runs/opticks -o hf --dtype bf16",
	}
	c.AddCommand(
		checkpointPart(a, "ls DIR", "list the checkpoints of a run",
			`ls lists the checkpoints of a run, the newest first, from their manifests. It does not read the tensors.`,
			1, ckpttools.List),
		checkpointPart(a, "show DIR", "verify a checkpoint and print what it has",
			`show verifies a checkpoint and prints its manifest and its files. With the folder of a run, it shows the newest
checkpoint. --json lists all tensors.`, 1, ckpttools.Show),
		verifyCheckpointsCommand(a),
		checkpointPart(a, "diff A B", "compare two checkpoints: manifests and tensors",
			`diff verifies two checkpoints and compares their manifests, and their tensors number by number. RELATIVE is the
norm of the difference divided by the larger norm of both tensors.`, 2, ckpttools.Diff),
		exportCheckpointCommand(a), pruneCommand(a))
	c.Args = func(_ *cobra.Command, args []string) error { return unknownPart(c, args) }
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// foldersArg checks that a command has a number of folders; 0: one or more.
func foldersArg(want int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return inputErrorf(BadFlag, "", "%s needs the folder of a run or checkpoint", c.CommandPath())
		case want > 0 && len(args) > want:
			return inputErrorf(TooManyArguments, "", "%s takes %d, but %d folders are given: %s", c.CommandPath(), want,
				len(args), strings.Join(args, ", "))
		case len(args) < want:
			return inputErrorf(BadFlag, "", "%s needs %d folders", c.CommandPath(), want)
		}
		return nil
	}
}

// checkpointError returns an input error for what is wrong with a checkpoint or an argument.
func checkpointError(err error) error {
	var bad *ckpt.InputError
	if errors.As(err, &bad) {
		return ir.Diags{{Code: codeBadCheckpoint, Msg: strings.TrimPrefix(bad.Msg, "checkpoint: ")}}
	}
	var flag *ckpttools.FlagError
	if errors.As(err, &flag) {
		return inputErrorf(BadFlag, "", "%s", flag.Msg)
	}
	return err
}

// runCheckpoint runs a command of planc checkpoint and prints its result.
func runCheckpoint[R screened](a *app, run func(ctx context.Context) (R, error)) error {
	return checkpointError(printResult(a, run))
}

// checkpointPart returns a command that reads checkpoints.
func checkpointPart[R screened](a *app, use, short, long string, folders int,
	run func(context.Context, *console.Console, []string) (R, error)) *cobra.Command {
	name, _, _ := strings.Cut(use, " ")
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: foldersArg(folders),
		Example: "planc checkpoint " + name + strings.Join([]string{"", "runs/opticks", "runs/other"}[:1+folders], " "),
		RunE: func(_ *cobra.Command, args []string) error {
			return runCheckpoint(a, func(ctx context.Context) (R, error) { return run(ctx, a.Console, args) })
		},
		ValidArgsFunction: anyFile,
	}
	a.jsonFlag(c)
	return c
}

func verifyCheckpointsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "verify DIR...",
		Short: "read checkpoints and compare every file with its checksum",
		Long: `verify reads every file of the checkpoints and compares it with the SHA-256 of its manifest. With the folder of
a run, it verifies all of its checkpoints. It exits with 2 if one is damaged.`,
		Example: "planc checkpoint verify runs/opticks",
		Args:    foldersArg(0),
		RunE: func(_ *cobra.Command, args []string) error {
			damaged, all := 0, 0
			err := runCheckpoint(a, func(ctx context.Context) (*ckpttools.Verified, error) {
				v, err := ckpttools.Verify(ctx, a.Console, args)
				if err == nil {
					damaged, all = v.Damaged(), len(v.Rows)
				}
				return v, err
			})
			if err != nil || damaged == 0 {
				return err
			}
			return &reportedError{inputErrorf(codeBadCheckpoint, "", "%d of %d checkpoints: damaged", damaged, all)}
		},
		ValidArgsFunction: anyFile,
	}
	a.jsonFlag(c)
	return c
}

func exportCheckpointCommand(a *app) *cobra.Command {
	var e ckpttools.Export
	c := &cobra.Command{
		Use:   "export DIR -o NEWDIR",
		Short: "write a checkpoint as a Hugging Face model",
		Long: `export verifies a checkpoint and writes its model to a new folder, in the layout of Hugging Face's tools:
safetensors files and config.json. With the folder of a run, it exports the newest checkpoint. It needs neither the
job nor the training binary, whose flag --export writes the same files.`,
		Example: "planc checkpoint export runs/opticks -o hf --dtype bf16 --shard-size 2GB",
		Args:    foldersArg(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return runCheckpoint(a, func(ctx context.Context) (*ckpttools.Exported, error) {
				return e.Run(ctx, a.Console, args[0])
			})
		},
		ValidArgsFunction: anyFile,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&e.Out, "output", "o", "", "write the model to the folder `NEWDIR`, which must be new or empty")
	f.StringVar(&e.Type, "dtype", "",
		"`TYPE` of the tensors: bf16, fp16 or fp32, rounded to nearest; default: that of the checkpoint")
	f.StringVar(&e.ShardSize, "shard-size", "5GB", "`SIZE` of a file at most, such as 500MB")
	a.jsonFlag(c)
	return c
}

func pruneCommand(a *app) *cobra.Command {
	var p ckpttools.Prune
	c := &cobra.Command{
		Use:   "prune DIR --keep-last N",
		Short: "remove old checkpoints of a run",
		Long: `prune removes the checkpoints of a run that no flag keeps. It never removes what is not a complete checkpoint,
and refuses while a run is saving in the folder. A job prunes by itself with train.checkpoint.keep_last.`,
		Example: "planc checkpoint prune runs/opticks --keep-last 3 --best 1 --dry-run",
		Args:    foldersArg(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return runCheckpoint(a, func(ctx context.Context) (*ckpttools.Pruned, error) {
				return p.Run(ctx, a.Console, args[0])
			})
		},
		ValidArgsFunction: anyFile,
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&p.Last, "keep-last", 0, "keep the `N` newest; at least 1")
	f.Int64Var(&p.Every, "keep-every", 0, "also keep those of every `N`th step")
	f.IntVar(&p.Best, "best", 0, "also keep the `N` with the lowest validation losses")
	f.BoolVar(&p.DryRun, "dry-run", false, "only print what would be removed")
	a.jsonFlag(c)
	return c
}
