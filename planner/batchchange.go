package planner

import (
	"fmt"
	"math"
	"strconv"
)

// BatchChange returns what a user should know about the learning rate if the job's global batch is no longer the one
// that the job was locked with; "" if it is, or if there is no lock (0).
func BatchChange(q *Question, lockedBatch int) string {
	batch := q.Train.GlobalBatch
	if lockedBatch < 1 || lockedBatch == batch {
		return ""
	}
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
	o := q.Train.Optimizer
	rule, factor := learningRateRule(o.Kind, lockedBatch, batch)
	return fmt.Sprintf("the batch was %d and is %d, and planc keeps the learning rate %s. If that was chosen for %d, "+
		"guides scale it with %s by %s (%s): --set train.optimizer.lr=%s",
		lockedBatch, batch, strconv.FormatFloat(o.LR, 'g', -1, 64), lockedBatch, o.Kind, rule, short(factor),
		short(o.LR*factor))
}

// learningRateRule returns how guides scale the learning rate with the batch, and the factor: linearly with SGD (Goyal
// et al. 2017, arXiv:1706.02677), by the square root with Adam and AdamW (Malladi et al. 2022, arXiv:2205.10287).
func learningRateRule(optimizer string, from, to int) (rule string, factor float64) {
	ratio := float64(to) / float64(from)
	if optimizer == "sgd" {
		return "the ratio", ratio
	}
	return "the square root of the ratio", math.Sqrt(ratio)
}
