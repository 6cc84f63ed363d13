package space

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// AxisOrders returns the distinct axis orders: all permutations of the axes with several ranks, if there are several
// nodes. Axes of one rank keep their position.
func AxisOrders(p *ir.Plan, nodes int) []string {
	names := SplitOrder(DefaultOrder(p))
	var active []int
	for i := range names {
		if Degree(p, names[i]) > 1 {
			active = append(active, i)
		}
	}
	if nodes <= 1 {
		active = nil
	}
	var out []string
	for _, perm := range permutations(len(active)) {
		order := slices.Clone(names)
		for i, j := range perm {
			order[active[i]] = names[active[j]]
		}
		if slices.Index(order, "cp") > slices.Index(order, "dp") {
			continue // cp communicates in each layer, and dp only once per step
		}
		out = append(out, strings.Join(order, ","))
	}
	return out
}

// DefaultOrder returns the default axis order of a plan.
func DefaultOrder(p *ir.Plan) string {
	switch {
	case p.CP > 1 && p.PP > 1:
		return "tp,cp,dp,pp"
	case p.CP > 1:
		return "tp,cp,dp"
	case p.PP > 1:
		return "tp,dp,pp"
	}
	return "tp,dp"
}

// permutations returns the permutations of 0 to n-1, the identity first.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, rest := range permutations(n - 1) {
		for at := n - 1; at >= 0; at-- {
			out = append(out, slices.Insert(slices.Clone(rest), at, n-1))
		}
	}
	return out
}

// SplitOrder returns the axes of an axis order.
func SplitOrder(order string) []string { return strings.Split(order, ",") }

// Degree returns the degree of an axis by its name.
func Degree(p *ir.Plan, axis string) int {
	switch axis {
	case "tp":
		return p.TP
	case "pp":
		return p.PP
	case "cp":
		return p.CP
	}
	return p.DP
}
