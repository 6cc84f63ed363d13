package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// kernels runs a job of runKernels in another process, because a kernel's fault ends the process.
func (b *bench) kernels(ctx context.Context, job string) (r Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"kernel", "-dir", b.dir}
	if b.tiny {
		args = append(args, "-tiny")
	}
	out, err := b.output(ctx, nil, self, append(args, job)...)
	if json.Unmarshal(out, &r) != nil && err == nil {
		err = fmt.Errorf("%s said %q", job, tail(string(out), 300))
	}
	return r, err
}

// kernelChecks returns a check that runs such a job.
func kernelChecks(job string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		got, err := b.kernels(ctx, job)
		r.Columns, r.Rows, r.Notes, r.Raw = got.Columns, got.Rows, got.Notes, got.Raw
		if err == nil && got.State == "failed" {
			return faultf("%s", got.Why)
		}
		return err
	}
}
