package migrate

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// withRanks puts the rule about the ranks of a replica in front of the error that the global batch is 0: scripts
// compute the batch from the number of replicas, which is 0 if a replica has more ranks than the cluster has devices.
// load returns the job with one more override.
func withRanks(s *Source, err error, load func(...spec.Override) (*planner.Question, error)) error {
	var diags ir.Diags
	isZero := func(d ir.Diag) bool { return strings.HasPrefix(d.Msg, "train.global_batch is 0;") }
	if !errors.As(err, &diags) || len(diags) != 1 || !isZero(diags[0]) {
		return err
	}
	q, other := load(spec.Override{Key: "train.global_batch", Value: strconv.Itoa(ranksOf(s)), Shown: s.Main()})
	if other != nil || q.Hardware.Devices() >= ranksOf(s) {
		return err
	}
	rules, other := planner.BrokenRules(q)
	if other != nil || len(rules) == 0 {
		return err
	}
	return slices.Concat(rules[:1], diags)
}

// ranksOf returns the number of ranks of a replica of the files' plan.
func ranksOf(s *Source) int {
	ranks := 1
	for _, key := range []string{"tp", "pp", "cp"} {
		f, _ := s.Import.Field("plan." + key)
		if n, err := strconv.Atoi(f.Value); err == nil && n > 1 {
			ranks *= min(n, mostDegree)
		}
	}
	return ranks
}

// mostDegree is more than any degree, and small enough to multiply three of them.
const mostDegree = 1 << 20
