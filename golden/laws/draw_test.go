package laws_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes"
)

// Law 1 by random draws: a small model, 1 to 16 ranks, and a legal plan over all choices. PLANC_DRAWS is the number
// of draws, PLANC_SEED the first one. If only PLANC_SEED is set, as many draws run as without it. A number identifies
// each draw. Consecutive draws share a model, so that its one-rank programs are built once.

// lawDrawsModel is the number of consecutive draws with one model.
const lawDrawsModel = 4

// lawMaxRanks bounds the ranks of a draw.
const lawMaxRanks = 16

// longDraws is the number of draws in the long run.
const longDraws = 1000

// shortModels are the models whose draws the short run takes. The first ten were chosen from those of the long run one
// by one, each as the model whose draws add most pairs of kinds to those of the last five and of the ones before it; a
// pair that is frequent in the long run counts four times (TestShortDrawsAreOfEveryKind).
var shortModels = []uint64{107, 159, 143, 95, 118, 87, 213, 110, 35, 146, 1, 2, 3, 4, 5}

// shortDraws returns the numbers of the draws in the short run.
func shortDraws() (numbers []uint64) {
	for _, m := range shortModels {
		numbers = append(numbers, drawNumbers(m*lawDrawsModel, lawDrawsModel)...)
	}
	return numbers
}

// drawNumbers returns n numbers from the first one.
func drawNumbers(first uint64, n int) (numbers []uint64) {
	for i := range n {
		numbers = append(numbers, first+uint64(i))
	}
	return numbers
}

// wantedDraws returns the numbers of the draws that the environment asks for.
func wantedDraws() []uint64 {
	short := shortDraws()
	n, drawsErr := strconv.Atoi(os.Getenv("PLANC_DRAWS"))
	seed, seedErr := strconv.ParseUint(os.Getenv("PLANC_SEED"), 10, 64)
	if !harness.Long() && drawsErr != nil && seedErr != nil {
		return short
	}
	if drawsErr != nil {
		n = len(short)
		if harness.Long() {
			n = longDraws
		}
	}
	if seedErr != nil {
		seed = 1
	}
	return drawNumbers(seed, n)
}

func TestWantedDraws(t *testing.T) {
	short := shortDraws()
	for _, c := range []struct {
		draws, seed, laws string
		want              []uint64
	}{
		{"", "", "", short}, {"", "5", "", drawNumbers(5, len(short))}, {"2", "", "", drawNumbers(1, 2)},
		{"2", "5", "long", drawNumbers(5, 2)}, {"", "5", "long", drawNumbers(5, longDraws)},
		{"", "", "long", drawNumbers(1, longDraws)},
	} {
		t.Setenv("PLANC_DRAWS", c.draws)
		t.Setenv("PLANC_SEED", c.seed)
		t.Setenv("PLANC_LAWS", c.laws)
		if got := wantedDraws(); !slices.Equal(got, c.want) {
			t.Errorf("PLANC_DRAWS=%s PLANC_SEED=%s PLANC_LAWS=%s: %d draws from %d, want %d from %d", c.draws, c.seed,
				c.laws, len(got), got[0], len(c.want), c.want[0])
		}
	}
}

func TestLawDraws(t *testing.T) {
	t.Parallel() // one test generates or runs code while another compiles
	for _, c := range runLawCases(t, "draws", drawCases(wantedDraws())) {
		if c.plan.Ranks() > 1 {
			least := shrink(t, c)
			t.Logf("the least plan that fails as %s does; to keep it as a case: golden/laws/NAME.txtar\n%s", c.id,
				least.archive())
			break // shrinking one failure is enough
		}
	}
}

// drawCases returns the draws of these numbers, preceded by the one-rank programs that they are compared with.
func drawCases(numbers []uint64) []lawCase {
	var out []lawCase
	refs := map[string]bool{}
	var draws []lawCase
	for _, n := range numbers {
		c := drawCase(n)
		c.id = fmt.Sprintf("d%d", n)
		if !refs[c.group] {
			refs[c.group] = true
			ref := c
			ref.id = fmt.Sprintf("ref%d", len(refs))
			ref.plan = ir.SerialPlan(c.model.Layers, lawBatch, c.plan.Precision)
			out = append(append(out, ref), yardsticks(ref)...)
		}
		draws = append(draws, c)
	}
	return append(out, draws...)
}

// kinds returns a draw's value of each choice.
func (c *lawCase) kinds() []string {
	p := &c.plan
	return []string{"schedule " + p.Schedule, fmt.Sprint("zero ", p.Zero), fmt.Sprint("zero over some ",
		p.Zero > 0 && p.ZeroGroup < p.Replicas()),
		"recompute " + p.Recompute, fmt.Sprint("groups ", p.RecomputeEvery > 1), fmt.Sprint("split input ",
			p.RecomputeSplit), "cp " + p.CPKind,
		fmt.Sprint("documents ", c.model.documents), fmt.Sprint("experts ", c.model.Experts > 0),
		fmt.Sprint("ep ", p.EP > 1), fmt.Sprint("etp ", p.ETP > 1),
		fmt.Sprint("dp ", p.DP > 1), fmt.Sprint("tp ", p.TP > 1),
		fmt.Sprint("sp ", p.SP), fmt.Sprint("pp ", p.PP), fmt.Sprint("micro ", p.MicroBatch),
		"type " + c.elem.String(), "optimizer " + c.optimizer,
		fmt.Sprint("dropout ", c.model.DropResid > 0)}
}

// The short run has every kind of draw of the long one, and every pair of kinds that meets in fifty draws of the long
// run or more.
func TestShortDrawsAreOfEveryKind(t *testing.T) {
	had, met := map[string]bool{}, map[[2]string]bool{}
	often := map[[2]string]int{}
	pairs := func(n uint64) (kinds []string, pairs [][2]string) {
		c := drawCase(n)
		kinds = c.kinds()
		for j, kind := range kinds {
			for _, other := range kinds[:j] {
				pairs = append(pairs, [2]string{other, kind})
			}
		}
		return kinds, pairs
	}
	for _, n := range shortDraws() {
		kinds, meet := pairs(n)
		for _, kind := range kinds {
			had[kind] = true
		}
		for _, pair := range meet {
			met[pair] = true
		}
	}
	for _, n := range drawNumbers(1, longDraws) {
		kinds, meet := pairs(n)
		for _, kind := range kinds {
			if !had[kind] {
				t.Errorf("draw %d has %s, which no draw of the short run has", n, kind)
			}
		}
		for _, pair := range meet {
			often[pair]++
		}
	}
	for pair, n := range often {
		if n >= longDraws/20 && !met[pair] {
			t.Errorf("%d draws have %s with %s, but none of the short run has", n, pair[0], pair[1])
		}
	}
	t.Logf("%d kinds, %d of two that meet", len(had), len(met))
}

// docs/laws.md has a table of how many draws have experts and context parallelism.
func TestDrawsOfThePage(t *testing.T) {
	count := func(numbers []uint64) string {
		k := map[string]int{}
		for _, n := range numbers {
			c := drawCase(n)
			p, experts := &c.plan, c.model.Experts > 0
			for what, is := range map[string]bool{"experts": experts, "ep": experts && p.EP > 1,
				"wide": experts && p.EP > p.DP, "etp": experts && p.ETP > 1,
				"both": experts && p.CP > 1, "cp": p.CP > 1, p.CPKind: true} {
				if is {
					k[what]++
				}
			}
		}
		return harness.TableRow(fmt.Sprint(len(numbers)), fmt.Sprint(k["experts"]), fmt.Sprint(k["ep"]),
			fmt.Sprint(k["wide"]),
			fmt.Sprint(k["etp"]), fmt.Sprint(k["cp"]),
			fmt.Sprint(k["gather"]), fmt.Sprint(k["heads"]), fmt.Sprint(k["ring"]), fmt.Sprint(k["both"]))
	}
	page, err := os.ReadFile(filepath.Join(harness.Root, "docs", "laws.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, numbers := range [][]uint64{shortDraws(), drawNumbers(1, longDraws)} {
		if want := count(numbers); !strings.Contains(string(page), want+"\n") {
			t.Errorf("docs/laws.md does not have the row %q", want)
		}
	}
}

func pickOf[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// drawnCases caches cases by number, because tests ask for the same ones.
var drawnCases sync.Map

// drawCase returns the case of number n.
func drawCase(n uint64) lawCase {
	if c, ok := drawnCases.Load(n); ok {
		return c.(lawCase)
	}
	c := drawPlanOf(n)
	drawnCases.Store(n, c)
	return c
}

// drawPlanOf draws a plan of number n, for the model of that number.
func drawPlanOf(n uint64) lawCase {
	first := rand.New(rand.NewPCG(n/lawDrawsModel, 1))
	c := drawModel(first)
	drawExperts(rand.New(rand.NewPCG(n/lawDrawsModel, 2)), &c)
	drawDocuments(rand.New(rand.NewPCG(n/lawDrawsModel, documentsStream)), &c)
	precision := drawPrecision(first, &c)
	r := rand.New(rand.NewPCG(n, 0))
	for {
		p, ok := drawPlan(r, c.model)
		p.Precision = precision
		c.plan = p
		if ok && c.legal() {
			return c
		}
	}
}

// drawModel draws the model, the optimizer and the type.
func drawModel(r *rand.Rand) lawCase {
	elem := pickOf(r, ir.F64, ir.F64, ir.F64, ir.F64, ir.F32, ir.F32, ir.BF16, ir.F16)
	broad, others := lawVariants(elem)
	vs := append(broad, others...)
	i := r.IntN(len(vs))
	c := vs[i]
	c.model.Layers = 2 + i%4
	c.group = fmt.Sprintf("%s-%dl", c.group, c.model.Layers)
	return c
}

// drawExperts gives the model of some draws experts.
func drawExperts(r *rand.Rand, c *lawCase) {
	if r.IntN(3) > 0 {
		return
	}
	models := append(expertModels(), slices.DeleteFunc(routedModels(), func(m lawModel) bool {
		return m.Over != spec.OverSequence
	})...)
	drop := c.model.DropResid
	c.model = models[r.IntN(len(models))]
	c.model.DropEmbd, c.model.DropResid, c.model.DropAttn = drop, drop, drop
	c.model.Layers = max(2+r.IntN(3), c.model.Dense+1)
	c.group = fmt.Sprintf("%s-%s-drop%v-%v-%dl", c.model.name, c.optimizer, drop, c.elem, c.model.Layers)
}

// documentsStream is the stream of random numbers of drawDocuments. It is the first with which the short run has the
// pairs of kinds of TestShortDrawsAreOfEveryKind.
const documentsStream = 6

// drawDocuments gives some draws a mask of documents. Images have none.
func drawDocuments(r *rand.Rand, c *lawCase) {
	if r.IntN(3) > 0 || c.model.Channels > 0 {
		return
	}
	c.model.documents = true
	c.group += "-documents"
}

// drawRegrouping draws how the ranks of a stage are regrouped for experts, and the capacity of these.
func drawRegrouping(r *rand.Rand, p *ir.Plan, m lawModel) {
	if m.Experts == 0 {
		return
	}
	p.EP, p.ETP = pickOf(r, 1, 2, 2, 4, 8), pickOf(r, 1, 1, 2, 4)
	p.MoESlack = pickOf(r, 0, 0, 1, 1.25, 2)
}

// legal reports whether the model supports the plan: its heads and widths must be divisible.
func (c *lawCase) legal() bool {
	m := zoo.Build(c.group, c.model.Config, zoo.Options{SeqLen: lawSeq, Batch: 1, Elem: c.elem,
		Documents: c.model.documents})
	_, err := passes.Compile(m, c.plan, c.recipe(), passes.Options{})
	return err == nil
}

// drawPlan draws a plan, which is legal by construction except for the number of ranks.
func drawPlan(r *rand.Rand, m lawModel) (ir.Plan, bool) {
	p := ir.SerialPlan(m.Layers, 1, ir.Precision{})
	p.DP, p.TP, p.PP, p.CP = pickOf(r, 1, 1, 2, 4), pickOf(r, 1, 1, 2, 4, 8), pickOf(r, 1, 2, 2, 3, 4),
		pickOf(r, 1, 1, 2, 4)
	if p.CP > 1 {
		p.CPKind = pickOf(r, ir.ContextKinds[1:]...)
	}
	if p.Ranks() > lawMaxRanks {
		return p, false
	}
	p.SP = p.TP > 1 && r.IntN(2) == 0
	if p.Replicas() > 1 {
		p.Zero = pickOf(r, 0, 1, 2, 3)
		if p.Zero > 0 {
			p.ZeroGroup = pickOf(r, p.Replicas(), p.Replicas(), 2)
			if p.CP > 1 && p.ZeroGroup == 2 {
				p.ZeroGroup = p.CP * pickOf(r, 1, min(2, p.DP))
			}
		}
	}
	p.MicroBatch = pickOf(r, 1, 1, 2, 4)
	p.MicroBatches = lawBatch / p.DP / p.MicroBatch
	if p.MicroBatches < 1 {
		return p, false
	}
	drawPipeline(r, &p, m.Layers)
	drawRecompute(r, &p)
	axes := []string{"tp", "dp", "pp"}
	r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	if p.CP > 1 { // before dp, as in plans
		axes = slices.Insert(axes, r.IntN(slices.Index(axes, "dp")+1), "cp")
	}
	p.AxisOrder = strings.Join(axes, ",")
	drawRegrouping(r, &p, m)
	return p, p.PP*p.VPP <= m.Layers+2
}

func drawPipeline(r *rand.Rand, p *ir.Plan, layers int) {
	if p.PP == 1 {
		return
	}
	p.Schedule = pickOf(r, "gpipe", "1f1b", "zb-h1", "zb-v")
	if p.MicroBatches%p.PP == 0 && r.IntN(3) == 0 {
		p.Schedule = "interleaved"
	}
	switch p.Schedule {
	case "interleaved":
		p.VPP = pickOf(r, 2, 2, 3)
	case "zb-v":
		p.VPP = 2
	}
	p.StageLayers = drawStages(r, p.PP*p.VPP, layers)
}

// drawRecompute draws what backward recomputes.
func drawRecompute(r *rand.Rand, p *ir.Plan) {
	p.Recompute = pickOf(r, "none", "selective", "full", "full")
	if p.Recompute == "none" {
		return
	}
	p.RecomputeLayers = 1 + r.IntN(p.LargestChunk())
	if p.Recompute == "full" && p.RecomputeLayers > 1 && r.IntN(2) == 0 {
		p.RecomputeEvery = 2 + r.IntN(p.RecomputeLayers-1)
	}
	p.RecomputeSplit = p.TP > 1 && !p.SP && p.RecomputeEvery == 1 && r.IntN(2) == 0
}

// drawStages splits the blocks over chunks. Only the first and the last chunk, which hold the embedding and the head,
// may have no block.
func drawStages(r *rand.Rand, chunks, layers int) string {
	counts := make([]int, chunks)
	for i := 1; i < chunks-1; i++ {
		counts[i] = 1
		layers--
	}
	for range max(layers, 0) {
		counts[r.IntN(chunks)]++
	}
	words := make([]string, chunks)
	for i, n := range counts {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
