// Package report writes what a training run reports: progress for people or as log records, and metrics.jsonl.
package report
