package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// rates are the highest rates of a device, as the part has measured them: of a copy, and of a large bf16 GEMM. They are
// 0 on a machine without time.
type rates struct{ Bytes, Flops float64 }

// kernels runs a job of runKernels in another process, because a kernel's fault ends the process.
func (b *bench) kernels(ctx context.Context, job string) (r Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := []string{"kernel", "-dir", b.dir, "-rates", fmt.Sprintf("%g,%g", b.rates.Bytes, b.rates.Flops)}
	if b.tiny {
		args = append(args, "-tiny")
	}
	out, err := b.output(ctx, nil, self, append(args, job)...)
	if json.Unmarshal(out, &r) != nil && err == nil {
		err = fmt.Errorf("%s said %q", job, tail(string(out), 300))
	}
	return r, err
}

// ceiling is the job that measures the rates of the device.
const ceiling = "ceiling"

// kernelChecks returns a check that runs such a job. The first of a part measures the device's rates before.
func kernelChecks(job string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		if job != ceiling && b.rates == (rates{}) {
			if _, err := b.measureRates(ctx); err != nil {
				return err
			}
		}
		got, err := b.kernels(ctx, job)
		r.Columns, r.Rows, r.Notes, r.Raw = got.Columns, got.Rows, got.Notes, got.Raw
		if err == nil && got.State == "failed" {
			return faultf("%s", got.Why)
		}
		return err
	}
}

// ceilings is the check that reports the rates of the device.
func ceilings(ctx context.Context, b *bench, r *Result) error {
	got, err := b.measureRates(ctx)
	r.Columns, r.Rows, r.Notes, r.Raw = got.Columns, got.Rows, got.Notes, got.Raw
	return err
}

// measureRates measures the rates of the device, for the floors of later checks.
func (b *bench) measureRates(ctx context.Context) (r Result, err error) {
	r, err = b.kernels(ctx, ceiling)
	if err != nil {
		return r, err
	}
	var all []struct{ Bytes, Flops, Seconds float64 }
	text, err := json.Marshal(r.Raw)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || len(all) != 2 {
		return r, fmt.Errorf("ceilings: %d measurements: %w", len(all), err)
	}
	if copied, gemm := all[0], all[1]; copied.Seconds > 0 && gemm.Seconds > 0 {
		b.rates = rates{copied.Bytes / copied.Seconds, gemm.Flops / gemm.Seconds}
	}
	return r, nil
}
