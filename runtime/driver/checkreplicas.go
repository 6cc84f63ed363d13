package driver

import (
	"encoding/json"
	"fmt"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/tensors"
)

// checkReplicas ends the run if two ranks that have copies of the same parameters have different values. Equal plans
// compute equal bits, so a difference is a fault of hardware or of the program.
func (r *checkpoints) checkReplicas() error {
	if err := r.pull(); err != nil {
		return err
	}
	sums := make([][]tensors.Checksum, len(r.crew.ranks))
	if err := r.crew.do(func(k *rank.Rank) { sums[k.ID] = k.Checksums() }); err != nil {
		return err
	}
	if err := exchangeOfRanks(r.team, sums); err != nil {
		return err
	}
	text := differingReplicas(r.crew.ranks[0].ParamNames(), sums)
	if text == "" {
		return nil
	}
	r.metrics.Event(r.done.step, "stop", text)
	return fmt.Errorf("step %d: %s. Copies of a parameter must be equal to the bit: a GPU, its memory or a "+
		"link may be faulty; %s", r.done.step, text, r.goodCheckpointAdvice())
}

// exchangeOfRanks fills in the values of the other processes' ranks. all has one value per rank.
func exchangeOfRanks[T any](t *launch.Team, all []T) error {
	if t.Peers == nil {
		return nil
	}
	own, err := json.Marshal(all[t.First:][:t.Count])
	if err != nil {
		return err
	}
	parts, err := t.Peers.Exchange(own)
	if err != nil {
		return err
	}
	each := len(all) / len(parts)
	for process, b := range parts {
		var theirs []T
		if err := json.Unmarshal(b, &theirs); err != nil {
			return fmt.Errorf("process %d: %w", process, err)
		}
		copy(all[process*each:], theirs)
	}
	return nil
}

// differingReplicas says which parameter first differs between which ranks; "" if none does. sums has a list per rank.
func differingReplicas(names []string, sums [][]tensors.Checksum) string {
	text, others := "", 0
	for i, name := range names {
		first := map[uint64]int{} // rank by part
		differs := false
		for id := range sums {
			sum := sums[id][i]
			if sum.Part == 0 {
				continue
			}
			before, ok := first[sum.Part]
			if !ok {
				first[sum.Part] = id
				continue
			}
			if sums[before][i].Value == sum.Value {
				continue
			}
			if text == "" {
				text = fmt.Sprintf("rank %d and rank %d have different values of parameter %s", before, id, name)
			}
			differs = true
		}
		if differs {
			others++
		}
	}
	if others > 1 {
		text += fmt.Sprintf(", and %s", countOf(others-1, "more parameter"))
	}
	return text
}
