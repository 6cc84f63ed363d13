package ir_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"pgregory.net/rapid"
)

// anyPlan draws a value for every field of a plan, so that a new field without text is found.
func anyPlan(t *rapid.T) ir.Plan {
	var p ir.Plan
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch f.Kind() {
		case reflect.Int:
			f.SetInt(int64(rapid.IntRange(0, 1<<20).Draw(t, name)))
		case reflect.Bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case reflect.Float64:
			f.SetFloat(rapid.Float64Range(0, 8).Draw(t, name))
		case reflect.String:
			f.SetString(rapid.StringMatching(`[a-z0-9,_-]{0,9}`).Draw(t, name))
		case reflect.Struct: // precision
			isFP8 := rapid.Bool().Draw(t, name)
			for j := range f.NumField() {
				if g := f.Field(j); g.Kind() == reflect.Bool {
					g.SetBool(isFP8)
				} else {
					g.SetUint(uint64(rapid.SampledFrom([]ir.Elem{ir.F32, ir.F64, ir.I32, ir.BF16, ir.F16}).Draw(t,
						name)))
					if isFP8 && j == 0 {
						g.SetUint(uint64(ir.BF16)) // FP8 GEMMs store their results in it
					}
				}
			}
		default:
			t.Fatalf("field %s of a plan is a %v; give it text and this test a draw", name, f.Kind())
		}
	}
	return p
}

func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlan(t)
		got, err := ir.ParsePlan(p.Text())
		if err != nil || got != p {
			t.Fatalf("%+v printed as %q, which reads back as %+v, %v", p, p.Text(), got, err)
		}
	})
}

// Each field of a plan shows in its text and in its JSON: no two plans that differ print alike.
func TestPlanFieldsShow(t *testing.T) {
	base := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32))
	v := reflect.TypeOf(base)
	for i := range v.NumField() {
		p := base
		switch f := reflect.ValueOf(&p).Elem().Field(i); f.Kind() {
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Float64:
			f.SetFloat(f.Float() + 0.5)
		case reflect.String:
			f.SetString("1,2")
		default:
			f.Field(1).SetUint(uint64(ir.BF16))
		}
		a, _ := json.Marshal(p.JSON())
		b, _ := json.Marshal(base.JSON())
		if p.Text() == base.Text() || string(a) == string(b) {
			t.Errorf("field %s does not show in %q or %s", v.Field(i).Name, p.Text(), a)
		}
	}
	if n := len(base.JSON()); n != v.NumField() {
		t.Errorf("JSON has %d keys, a plan %d fields", n, v.NumField())
	}
}

func TestPlanErrors(t *testing.T) {
	good := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32)).Text()
	for _, c := range []struct{ old, now, want string }{
		{" tp=1", "", `plan: has 22 keys, must have 23`},
		{"tp=1", "pt=1", `plan: "pt=1" must be tp=value`},
		{"tp=1", "tp=x", `strconv.Atoi: parsing "x": invalid syntax`},
		{"tp=1", "tp=01", `plan: tp=01 is not in the form that planc prints`},
		{"sp=false", "sp=0", `plan: sp=0 is not in the form that planc prints`},
		{"moe_slack=0", "moe_slack=0.0", `plan: moe_slack=0.0 is not in the form that planc prints`},
		{"precision=f32,", "precision=", `precision "f32,f32,f32,f32,f32" must have 6 types`},
		{"precision=f32,", "precision=f9,", `precision "f9,f32,f32,f32,f32,f32": unknown type "f9"`},
	} {
		_, err := ir.ParsePlan(strings.Replace(good, c.old, c.now, 1))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s as %q: %v, want %s", c.old, c.now, err, c.want)
		}
	}
}

// The mesh of a plan has the ranks in the plan's order. tp beyond the K/V heads consists of two axes.
func TestPlanMesh(t *testing.T) {
	plan := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32))
	for _, c := range []struct {
		dp, tp, kv int
		order      string
		want       string
	}{
		{1, 1, 4, "tp,dp", "1"},
		{2, 4, 4, "tp,dp", "tp=4 dp=2"},
		{2, 4, 0, "dp,tp", "dp=2 tp=4"},
		{2, 8, 2, "tp,dp", "rep=4 kv=2 dp=2 : tp=rep*kv"},
		{2, 4, 1, "dp,tp", "dp=2 rep=4 : tp=rep"}, // one K/V head: all of tp is rep
		{2, 6, 4, "tp,dp", "tp 6 must be a multiple of the 4 K/V heads"},
		{2, 2, 4, "tp", `axis order "tp" does not contain dp`},
	} {
		plan.DP, plan.TP, plan.AxisOrder = c.dp, c.tp, c.order
		m, err := plan.Mesh(c.kv, 0)
		got := m.String()
		if err != nil {
			got = err.Error()
		} else if m.Size() != plan.Ranks() {
			t.Errorf("mesh %v has %d ranks, the plan %d", m, m.Size(), plan.Ranks())
		}
		if got != c.want {
			t.Errorf("dp %d tp %d kv %d: %s, want %s", c.dp, c.tp, c.kv, got, c.want)
		}
	}
	plan.DP, plan.TP, plan.AxisOrder, plan.Zero = 6, 4, "tp,dp", 1
	for group, want := range map[int]string{
		1: "rep=2 kv=2 dp=6 : tp=rep*kv", 6: "rep=2 kv=2 dp=6 : tp=rep*kv",
		2: "rep=2 kv=2 inner=2 outer=3 : tp=rep*kv dp=inner*outer", 4: "dp 6 must be a multiple of zero_group 4",
	} {
		plan.ZeroGroup = group
		m, err := plan.Mesh(2, 0)
		if got := m.String(); got != want && (err == nil || err.Error() != want) {
			t.Errorf("zero_group %d: %s, %v; want %s", group, got, err, want)
		}
	}
}
