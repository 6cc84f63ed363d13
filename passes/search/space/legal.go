package space

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
)

// Reason is a rule of legality that a plan breaks.
type Reason struct {
	Key     string // the plan key that it concerns
	Message string // with the numbers
	Field   string // the field of the job that the message asks to change; "" is plan.Key
}

// RuleContext is what rules of legality read in addition to the plan.
type RuleContext struct {
	Dims
	Devices, Nodes, Batch int
	// stage_layers that an enumeration has parsed; nil without a cache
	ParsedCounts map[string][]int
	Rules        []Rule        // all rules that apply
	engine       []Rule        // of these, the engine's rules
	pins         Pins          // of the problem
	shape        engines.Shape // for the engine's rules
}

// Rule is one row of the rules of legality. A plan that fails OK is not legal.
type Rule struct {
	Key     string
	Text    string // the rule in words
	OK      func(p *ir.Plan, s *RuleContext) bool
	Message func(p *ir.Plan, s *RuleContext) string
}

// rules are all rules of legality. Everything that they allow is legal, and priced.
var rules = slices.Concat(degreeRules, contextRules, expertRules, stageRules, recomputeRules(), axisOrderRules)

// degreeRules are the rules of degrees, sharding and batch. A vocabulary is padded, so tp need not divide it.
var degreeRules = []Rule{
	{"dp", "dp · tp · pp · cp is the number of devices", func(p *ir.Plan, s *RuleContext) bool {
		return p.Ranks() == s.Devices
	}, whyRanks},
	{"tp", "up to the K/V heads, tp divides them", func(p *ir.Plan, s *RuleContext) bool {
		return s.KVHeads == 0 || p.TP > s.KVHeads || s.KVHeads%p.TP == 0
	}, func(p *ir.Plan, s *RuleContext) string {
		return fmt.Sprintf("tp %d must divide %d %s%s", p.TP, s.KVHeads, engines.HeadsName(s.Group),
			s.suggest(p, "tp", Divisors(s.KVHeads)))
	}},
	{"tp", "above the K/V heads, tp is a multiple of them that splits the queries of each into equal groups",
		func(p *ir.Plan, s *RuleContext) bool {
			return s.KVHeads == 0 || p.TP <= s.KVHeads || p.TP%s.KVHeads == 0 && s.Group%(p.TP/s.KVHeads) == 0
		}, func(p *ir.Plan, s *RuleContext) string {
			if s.Group == 1 {
				return fmt.Sprintf("tp %d must divide %d attention heads%s", p.TP, s.KVHeads,
					s.suggest(p, "tp", Divisors(s.KVHeads)))
			}
			return fmt.Sprintf("tp %d must split %d heads with %d K/V heads into equal groups%s",
				p.TP, s.Heads(), s.KVHeads, s.suggest(p, "tp", s.headCuts()))
		}},
	{"tp", "tp divides the MLP's width", func(p *ir.Plan, s *RuleContext) bool { return s.FFN%p.TP == 0 },
		func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("tp %d must divide the MLP's width %d%s", p.TP, s.FFN,
				s.suggest(p, "tp", Divisors(s.FFN)))
		}},
	{"tp", "each rank has a row of the vocabulary, which is padded, so tp need not divide it",
		func(p *ir.Plan, s *RuleContext) bool {
			return s.Vocab == 0 || s.rowsForAll(p.TP)
		}, func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("tp %d leaves a rank without a row of the vocabulary of %d%s", p.TP, s.Vocab,
				s.suggest(p, "tp", Divisors(s.Devices)))
		}},
	{"sp", "sp requires tp above 1", func(p *ir.Plan, _ *RuleContext) bool { return !p.SP || p.TP > 1 },
		func(*ir.Plan, *RuleContext) string { return "sp requires tp above 1: use sp false" }},
	{"sp", "with sp, tp divides the positions of a rank, which are train.seq_len / cp",
		func(p *ir.Plan, s *RuleContext) bool {
			return !p.SP || (s.Seq/p.CP)%p.TP == 0
		},
		func(p *ir.Plan, s *RuleContext) string {
			own := max(1, s.Seq/p.CP)
			return fmt.Sprintf("sp: tp %d must divide %d positions%s", p.TP, own,
				s.suggestOr(p, "tp", Divisors(own), "sp false"))
		}},
	{"zero", "zero above 0 requires dp or cp above 1", func(p *ir.Plan, _ *RuleContext) bool {
		return p.Zero == 0 || p.Replicas() > 1
	},
		func(p *ir.Plan, _ *RuleContext) string {
			return fmt.Sprintf("zero %d requires dp above 1: use zero 0", p.Zero)
		}},
	{"zero", "zero is 0 to 3", func(p *ir.Plan, _ *RuleContext) bool { return p.Zero >= 0 && p.Zero <= 3 },
		func(p *ir.Plan, _ *RuleContext) string { return fmt.Sprintf("zero %d must be 0, 1, 2 or 3", p.Zero) }},
	{"zero_group", "zero_group is 1 if zero is 0, otherwise above 1 and cp times a divisor of dp",
		func(p *ir.Plan, _ *RuleContext) bool {
			return p.Zero == 0 && p.ZeroGroup == 1 ||
				p.Zero > 0 && (p.Replicas() == 1 || slices.Contains(replicaGroups(p), p.ZeroGroup))
		}, func(p *ir.Plan, s *RuleContext) string {
			if p.Zero == 0 && p.Replicas() == 1 {
				return fmt.Sprintf("zero_group %d requires dp above 1: use zero_group 1", p.ZeroGroup)
			}
			if p.Zero == 0 {
				return fmt.Sprintf("zero_group %d requires zero above 0: use zero_group 1", p.ZeroGroup)
			}
			return s.whyGroup(p)
		}},
	{"micro_batch", "dp · micro_batch divides train.global_batch", func(p *ir.Plan, s *RuleContext) bool {
		return s.DividesBatch(p)
	},
		func(p *ir.Plan, s *RuleContext) string {
			if s.Batch%p.DP != 0 {
				return s.whyBatch(p)
			}
			return fmt.Sprintf("micro_batch %d × dp %d must divide the global batch of %d%s",
				p.MicroBatch, p.DP, s.Batch, s.suggest(p, "micro_batch", Divisors(s.Batch/p.DP)))
		}},
	{"micro_batches", "dp · micro_batch · micro_batches is train.global_batch", func(p *ir.Plan, s *RuleContext) bool {
		return !s.DividesBatch(p) || p.MicroBatches == s.Batch/(p.DP*p.MicroBatch)
	}, func(p *ir.Plan, s *RuleContext) string { return s.OtherMicroBatches(p, p.MicroBatches) }},
}

// DividesBatch reports whether the batch is a whole number of micro-batches per replica.
func (s *RuleContext) DividesBatch(p *ir.Plan) bool {
	return p.MicroBatch >= 1 && s.Batch%(p.DP*p.MicroBatch) == 0
}

// OtherMicroBatches returns the message that a plan does not have n micro-batches.
func (s *RuleContext) OtherMicroBatches(p *ir.Plan, n int) string {
	return fmt.Sprintf("micro_batches %d: micro_batch %d × dp %d splits a global batch of %[5]d into %[4]d", n,
		p.MicroBatch,
		p.DP, s.Batch/(p.DP*p.MicroBatch), s.Batch)
}

// NoMicroBatches returns the message that no micro_batch gives n micro-batches, and which numbers are possible.
func (s *RuleContext) NoMicroBatches(p *ir.Plan, n int) string {
	q := *p
	q.MicroBatches = n
	return fmt.Sprintf("micro_batches %d × dp %d must divide the global batch of %d%s", n, p.DP, s.Batch,
		s.suggest(&q, "micro_batches", Divisors(s.Batch/p.DP)))
}

// recomputeRules returns the rules of package ir for the recompute keys.
func recomputeRules() []Rule {
	var rs []Rule
	for _, r := range ir.RecomputeRules {
		rs = append(rs, Rule{r.Key, r.When, func(p *ir.Plan, _ *RuleContext) bool { return r.OK(p) },
			func(p *ir.Plan, _ *RuleContext) string {
				return fmt.Sprintf("%s %s: %s", r.Key, KeyValues(*p)[r.Key], r.When)
			}})
	}
	return append(rs, Rule{"recompute_split",
		"recompute_split: tp divides the positions of a rank, which are train.seq_len / cp",
		func(p *ir.Plan, s *RuleContext) bool {
			return !p.RecomputeSplit || (s.Seq/p.CP)%p.TP == 0
		}, func(p *ir.Plan, s *RuleContext) string {
			own := max(1, s.Seq/p.CP)
			return fmt.Sprintf("recompute_split: tp %d must divide %d positions%s", p.TP, own,
				s.suggestOr(p, "tp", Divisors(own), "recompute_split false"))
		}})
}

// axisOrderRules are the rules of the axis order.
var axisOrderRules = []Rule{
	{"axis_order", "axis_order lists tp, dp and, if pp is above 1, pp. On one node, and for axes of one rank, the " +
		"order is " +
		"tp,dp,pp. If cp is above 1, it comes before dp, by default directly before it",
		func(p *ir.Plan, s *RuleContext) bool {
			return p.AxisOrder == DefaultOrder(p) || slices.Contains(AxisOrders(p, s.Nodes), p.AxisOrder)
		},
		func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("axis_order %s must be one of: %s", p.AxisOrder,
				strings.Join(AxisOrders(p, s.Nodes), "; "))
		}},
}

// Rules returns the rules of legality in words, in the order in which they are checked.
func Rules() []Reason {
	rs := make([]Reason, len(rules))
	for i, r := range rules {
		rs[i] = Reason{Key: r.Key, Message: r.Text}
	}
	return rs
}

// Legal returns the rules that a plan breaks. If there are none, the plan can be compiled for the model and the
// cluster. A degree below 1 breaks its rule like any other number. The rules of other engines are not checked.
func Legal(p ir.Plan, d Dims, c *costmodel.Cluster, globalBatch int) []Reason {
	return BrokenRules(&p, &RuleContext{Dims: d, Devices: c.Devices(), Nodes: c.Nodes, Batch: globalBatch,
		Rules: rules})
}

// BrokenRules returns the rules of a context that a plan breaks.
func BrokenRules(p *ir.Plan, s *RuleContext) []Reason {
	if min(p.DP, p.TP, p.PP, p.VPP, p.CP, p.EP, p.ETP) < 1 {
		words := fmt.Sprintf("dp %d · tp %d · pp %d · vpp %d", p.DP, p.TP, p.PP, p.VPP)
		if p.CP < 1 {
			words += fmt.Sprintf(" · cp %d", p.CP)
		}
		if min(p.EP, p.ETP) < 1 {
			words += fmt.Sprintf(" · ep %d · etp %d", p.EP, p.ETP)
		}
		return []Reason{{Key: "dp", Message: words + ": each degree must be at least 1"}}
	}
	var rs []Reason
	for i := range s.Rules {
		if r := &s.Rules[i]; !r.OK(p, s) {
			if r.Key == "micro_batch" && len(rs) > 0 && s.Batch%p.DP != 0 && s.Devices%(p.TP*p.PP*p.CP) != 0 {
				continue // the other degrees leave no whole dp to divide the batch by
			}
			rs = append(rs, Reason{r.Key, r.Message(p, s), s.fieldOf(r.Key, p)})
		}
	}
	return rs
}

// fieldOf returns the field of the job that the message of a rule of the batch or of the ranks asks to change; "" is
// the key of the rule.
func (s *RuleContext) fieldOf(key string, p *ir.Plan) string {
	isOfDP := key == "micro_batch" && s.Batch%p.DP != 0
	switch {
	case key == "dp":
		return "plan." + wrongDegree(p, s)
	case isOfDP && s.isWrongMicroBatch(p):
		if s.pins["dp"] != nil && s.pins["micro_batch"] != nil {
			return batchField
		}
	case isOfDP && s.pins["dp"] != nil && s.suggest(p, "dp", Divisors(s.Batch)) != "":
		return "plan.dp"
	case isOfDP:
		return batchField
	}
	return ""
}

// batchField is the field of the job that says the global batch.
const batchField = "train.global_batch"

// isWrongMicroBatch reports whether a micro_batch does not divide the batch, whatever dp is.
func (s *RuleContext) isWrongMicroBatch(p *ir.Plan) bool {
	return p.MicroBatch < 1 || s.Batch%p.MicroBatch != 0
}

// nearbyMultiples names the batches next to a given one that n divides.
func nearbyMultiples(batch, n int) string {
	below := batch / n * n
	if below == 0 {
		return fmt.Sprintf("a global batch of %d", n)
	}
	return fmt.Sprintf("a global batch of %d or %d", below, below+n)
}

// whyBatch returns the message of a dp that does not divide the batch, or of a pinned micro_batch that does not: dp is
// then that of the nearest plan, which nobody asked for.
func (s *RuleContext) whyBatch(p *ir.Plan) string {
	sequences := p.DP
	if p.MicroBatch <= s.Batch {
		sequences *= max(1, p.MicroBatch)
	}
	batch := nearbyMultiples(s.Batch, sequences)
	isWrong := s.isWrongMicroBatch(p)
	switch {
	case isWrong && s.pins["dp"] != nil && s.pins["micro_batch"] != nil:
		return fmt.Sprintf("dp %d and micro_batch %d do not divide the global batch of %d: use %s, or leave out "+
			"plan.dp and plan.micro_batch", p.DP, p.MicroBatch, s.Batch, batch)
	case isWrong:
		return fmt.Sprintf("micro_batch %d must divide the global batch of %d%s", p.MicroBatch, s.Batch,
			s.suggest(p, "micro_batch", Divisors(s.Batch)))
	}
	return fmt.Sprintf("dp %d must divide the global batch of %d%s", p.DP, s.Batch,
		s.suggestOr(p, "dp", Divisors(s.Batch), batch))
}

// maxListed is the largest number of allowed values that a message lists in full.
const maxListed = 8

// whyGroup names the values of zero_group with which a plan is better: all if they are few, or else the nearest.
func (s *RuleContext) whyGroup(p *ir.Plan) string {
	replicas := fmt.Sprintf("dp %d", p.DP)
	if p.CP > 1 {
		replicas += fmt.Sprintf(" · cp %d", p.CP)
	}
	use := s.suggest(p, "zero_group", replicaGroups(p))
	allowed := slices.DeleteFunc(replicaGroups(p), func(n int) bool { return !s.isBetter(p, "zero_group", n) })
	if n := len(allowed) - 1; n >= 1 && n < maxListed {
		words := make([]string, len(allowed))
		for i, n := range allowed {
			words[i] = strconv.Itoa(n)
		}
		use = ": use zero_group " + strings.Join(words[:n], ", ") + " or " + words[n]
	}
	if p.ZeroGroup == 1 {
		return fmt.Sprintf("zero_group 1 requires zero 0, and zero %d shards over %s%s", p.Zero, replicas, use)
	}
	return fmt.Sprintf("zero_group %d must divide %s%s", p.ZeroGroup, replicas, use)
}

// headCuts returns the degrees that split the heads evenly: the divisors of the K/V heads, and multiples of the K/V
// heads that split each one's queries.
func (d *Dims) headCuts() []int {
	cuts := Divisors(d.KVHeads)
	for _, g := range Divisors(d.Group)[1:] {
		cuts = append(cuts, d.KVHeads*g)
	}
	return cuts
}

// rowsForAll reports whether each of tp ranks has a row of the vocabulary.
func (d *Dims) rowsForAll(tp int) bool { return (tp-1)*((d.Vocab+tp-1)/tp) < d.Vocab }

// whyRanks names the dp with which the degrees match the devices, or else the possible values of another degree. dp
// is not named if no value works, because a job without a dp did not choose the one of its plan.
func whyRanks(p *ir.Plan, s *RuleContext) string {
	ranks := p.TP * p.PP * p.CP
	if s.Devices%ranks == 0 {
		return fmt.Sprintf("%s is %d ranks, but the cluster has %d devices%s",
			strings.Join(factors(p, "dp", "tp"), " · "), p.Ranks(), s.Devices,
			s.suggest(p, "dp", Divisors(s.Devices)))
	}
	_, hint := s.replacedDegree(p)
	degrees := factors(p)
	if len(degrees) == 1 {
		return fmt.Sprintf("%s must divide %d devices%s", degrees[0], s.Devices, hint)
	}
	return fmt.Sprintf("%s is %d ranks per replica, which must divide %d devices%s", strings.Join(degrees, " · "),
		ranks, s.Devices, hint)
}

// replacedDegree returns the degree of a replica with another value of which the degrees divide the devices, and the
// values; "" if there is none.
func (s *RuleContext) replacedDegree(p *ir.Plan) (key, hint string) {
	for _, key := range []string{"cp", "pp", "tp"} {
		other := p.TP * p.PP * p.CP / Degree(p, key)
		if s.Devices%other != 0 {
			continue
		}
		if hint := s.suggest(p, key, Divisors(s.Devices/other)); hint != "" {
			return key, hint
		}
	}
	return "", ""
}

// wrongDegree returns the degree to change if the degrees do not match the devices.
func wrongDegree(p *ir.Plan, s *RuleContext) string {
	if s.Devices%(p.TP*p.PP*p.CP) == 0 {
		return "dp"
	}
	if key, _ := s.replacedDegree(p); key != "" {
		return key
	}
	for _, key := range []string{"tp", "pp", "cp"} {
		if s.Devices%Degree(p, key) != 0 {
			return key
		}
	}
	return "dp"
}

// factors returns the degrees of tp, pp and cp above 1, and those that are always named.
func factors(p *ir.Plan, always ...string) (out []string) {
	for _, axis := range []string{"dp", "tp", "pp", "cp"} {
		if n := Degree(p, axis); slices.Contains(always, axis) || n > 1 && axis != "dp" {
			out = append(out, fmt.Sprintf("%s %d", axis, n))
		}
	}
	return out
}

// ParseCounts parses a plan's stage_layers; nil if it is not a list of counts.
func ParseCounts(p *ir.Plan) []int {
	var out []int
	for _, w := range strings.Split(p.StageLayers, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}

// JoinCounts is the inverse of ParseCounts.
func JoinCounts(ns []int) string {
	return string(AppendCounts(nil, ns))
}

// AppendCounts appends counts to a text.
func AppendCounts(text []byte, ns []int) []byte {
	for i, n := range ns {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return text
}
