package main

import (
	"fmt"
	"math"
	"strconv"
)

// batchChange is what a user should know about the learning rate if the job's batch is not the lock's; "" if it is, or
// if there is no lock.
func batchChange(j *loaded, l *jobLock) string {
	if l == nil || l.file == nil {
		return ""
	}
	was, err := strconv.Atoi(l.file.Inputs["train"]["global_batch"])
	if err != nil || was < 1 || was == j.Train.GlobalBatch {
		return ""
	}
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
	rate := strconv.FormatFloat(j.Train.Optimizer.LR, 'g', -1, 64)
	rule, factor := rateRule(j.Train.Optimizer.Kind, was, j.Train.GlobalBatch)
	return fmt.Sprintf("the batch was %d and is %d, and planc keeps the learning rate %s. If that was chosen for %d, "+
		"guides scale it with %s by %s (%s): --set train.optimizer.lr=%s",
		was, j.Train.GlobalBatch, rate, was, j.Train.Optimizer.Kind, rule, short(factor),
		short(j.Train.Optimizer.LR*factor))
}

// rateRule is how guides scale the learning rate with the batch, and the factor: linearly with SGD (Goyal et al. 2017,
// arXiv:1706.02677), by the square root with Adam and AdamW (Malladi et al. 2022, arXiv:2205.10287).
func rateRule(optimizer string, from, to int) (rule string, factor float64) {
	ratio := float64(to) / float64(from)
	if optimizer == "sgd" {
		return "the ratio", ratio
	}
	return "the square root of the ratio", math.Sqrt(ratio)
}
