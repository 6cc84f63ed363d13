package screen

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// Experts says how a plan's experts lie on its ranks, in planc's words and as texts that count ep as an axis of
// its own have it, and what their price rests on; "" where there are none.
func Experts(p ir.Plan, e price.Experts) string {
	if p.MoESlack == 0 {
		return ""
	}
	axes := func(dp int) string {
		words := []string{fmt.Sprintf("dp %d", dp)}
		for _, a := range []struct {
			name string
			size int
		}{{"cp", p.CP}, {"tp", p.TP}, {"pp", p.PP}} {
			if a.size > 1 {
				words = append(words, fmt.Sprintf("%s %d", a.name, a.size))
			}
		}
		return strings.Join(words, " · ")
	}
	text := fmt.Sprintf("edp %d · ep %d · etp %d regroup the ranks of %s", e.Replicas, p.EP, p.ETP, axes(p.DP))
	if p.EP > 1 && e.Own > 0 {
		text += fmt.Sprintf("; where ep counts as an axis of its own that is %s · ep %d", axes(e.Own), p.EP)
	}
	if e.Rounds == 0 {
		return text + ". Priced as if tokens were spread evenly over experts."
	}
	rounds := "one round is"
	if e.Rounds > 1 {
		rounds = fmt.Sprintf("%.0f rounds are", e.Rounds)
	}
	text += fmt.Sprintf(". Priced as if any token may choose any expert: with moe_slack %v %s expected",
		p.MoESlack, rounds)
	if e.Empty > 0 {
		text += fmt.Sprintf(", %.0f %% of whose places stay empty (expert_empty)", 100*e.Empty)
	}
	if e.Room > 0 {
		text += ". " + strings.ToUpper(nextRound(e)[:1]) + nextRound(e)[1:]
	}
	return text + ". Backward makes the experts' values again (expert_again)."
}

// nextRound says how near the next round is.
func nextRound(e price.Experts) string {
	return fmt.Sprintf("the fullest expert is expected to get %.2f times its even share of a rank's tokens; above "+
		"%.2f times, %s more, there is a further round",
		e.Fullest, e.Room, quantity.Percent(e.Room/e.Fullest-1))
}

// slackLine is what a gain by another moe_slack comes to and rests on; "" where none gains.
func (d *Document) slackLine() string {
	l, tried := d.Lever("moe_slack")
	if !tried || l.Best == nil || l.Speedup < planner.LeastGain {
		return ""
	}
	m := l.Best.Predict
	text := fmt.Sprintf("%s: %s, %s, where routers are as even as chance", leverName(d, l),
		quantity.Seconds(float64(m.StepS)),
		quantity.Bytes(m.MemoryBytes.Total))
	if l.Experts.Room > 0 {
		text += ": " + nextRound(l.Experts)
	}
	return layout.Prose("", labelColumn, text+".")
}
