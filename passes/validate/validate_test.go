package validate

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
)

// row is a table's only row.
func row(t *testing.T, head, line string) *Row {
	t.Helper()
	rows, err := Parse("t.csv", []byte(head+"\n"+line+"\n"))
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return &rows[0]
}

// Cells are read with units, in any case, with thousands apart.
func TestCells(t *testing.T) {
	r := row(t, " Measured_Step_S ,num_gpus,global_batch,zero_or_fsdp,sp,precision,measured_mem_gb_per_gpu",
		`12.5 s,"1,024",4K,None (FSDP),Yes,BF16,74.5 GiB`)
	if got := r.StepS(); got != 12.5 {
		t.Errorf("step %v", got)
	}
	if n := r.count("num_gpus", 0); n != 1024 {
		t.Errorf("GPUs %d", n)
	}
	if n := r.count("global_batch", 0); n != 4000 {
		t.Errorf("batch %d", n)
	}
	if z, stated := r.zeroStage(); z != 3 || !stated {
		t.Errorf("zero %d %v", z, stated)
	}
	if got := r.MemoryBytes(); got != 74.5*(1<<30) {
		t.Errorf("memory %v", got)
	}
	if !r.truth("sp", false) {
		t.Error("sp is not read")
	}
}

// A rate becomes a step time: batch · seq_len tokens over all GPUs.
func TestStepOfTokens(t *testing.T) {
	r := row(t, "measured_tokens_per_s_per_gpu,num_gpus,global_batch,seq_len", "1000,8,16,2048")
	if got, want := r.StepS(), 16*2048.0/8000; math.Abs(got-want) > 1e-12 {
		t.Errorf("step %v, want %v", got, want)
	}
}

// An empty engine follows the documented rule.
func TestEngineOfRow(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"1,1,3,,bf16,", "fsdp"}, {"1,1,hsdp,,bf16,", "fsdp"}, {"1,1,0,,bf16,", "fsdp"},
		{"1,1,None (FSDP),,bf16,", "fsdp"},
		{"8,4,1,1,bf16,", "megatron"}, {"8,4,none,0,fp16,", "megatron"}, {"1,1,,,fp16,", "megatron"},
		{"8,1,,1,fp8,", "megatron"},
		{"4,2,1,,fp16,", "deepspeed"}, {"1,1,3,,fp16,", "deepspeed"}, {"1,1,3,,bf16,Megatron-LM", "megatron"},
		{"1,1,3,,bf16,planc", "planc"},
	} {
		if got := row(t, "tp,pp,zero_or_fsdp,dist_optimizer,precision,engine", c.line).engine(); got != c.want {
			t.Errorf("%s: engine %q, want %q", c.line, got, c.want)
		}
	}
}

// Layers that do not divide leave the ends the smaller chunks.
func TestStagesOfRow(t *testing.T) {
	r := row(t, "layers,hidden,heads,seq_len,gpu,num_gpus,pp,tp,global_batch,precision,stage_layers",
		"70,14336,112,2048,A100,384,12,4,2048,bf16,")
	q, err := NewAsker().Question(r)
	if err != nil {
		t.Fatal(err)
	}
	if q.Plan.StageLayers != "5,6,6,6,6,6,6,6,6,6,6,5" || q.Plan.Schedule != "1f1b" || q.Plan.DP != 8 {
		t.Errorf("%v, stages %s", q.Plan, q.Plan.StageLayers)
	}
	r = row(t, "layers,hidden,heads,seq_len,gpu,num_gpus,pp,global_batch,stage_layers",
		"24,1024,16,1024,T4,4,4,32,7-6-6-5")
	q, err = NewAsker().Question(r)
	if err != nil || q.Plan.StageLayers != "7,6,6,5" {
		t.Errorf("stages %v, %v", q, err)
	}
}

// Networks are read from words.
func TestNetworkOfRow(t *testing.T) {
	for _, c := range []struct {
		note string
		nics int
		gbs  float64
	}{{"8x400Gb/s", 8, 50}, {"4x Omni-Path 100Gb/s per node (memory)", 4, 12.5}, {"1600 Gbps node-node RoCE", 1, 200},
		{"400 Gb/s RDMA per GPU", 8, 50}, {"InfiniBand 8x50 GB/s", 8, 50}, {"AWS g4dn.12xlarge 50 Gbps", 1, 6.25}} {
		got, err := row(t, "gpu,num_gpus,inter_bw_note", "A100,16,"+c.note).cluster()
		if err != nil {
			t.Fatal(err)
		}
		if n := got.Network[0]; n.NICs != c.nics || math.Abs(float64(n.Bandwidth)/1e9-c.gbs) > 1e-9 {
			t.Errorf("%s: %d NICs of %v", c.note, n.NICs, n.Bandwidth)
		}
	}
	// of Jean Zay's V100s
	for note, measured := range map[string]bool{"4x Omni-Path 100Gb/s (memory)": true, "8x100Gb/s": false} {
		for _, gb := range []string{"16", "32"} {
			got, err := row(t, "gpu,gpu_mem_gb,gpus_per_node,num_gpus,inter_bw_note",
				"V100-SXM2,"+gb+",4,16,"+note).cluster()
			if err != nil || got.Measured.Network > 0 != measured {
				t.Errorf("%s of %s GB: of its network %v was measured, %v", note, gb, got.Measured.Network, err)
			}
		}
	}
}

// Summaries of known errors: pairs, regret and ranks are counted within a group alone.
func TestSummaries(t *testing.T) {
	make := func(model string, predicted, measured float64) *Priced {
		e := predicted/measured - 1
		return &Priced{Predicted: predicted, Measured: &measured, Error: &e, group: group{model: model}}
	}
	s := Summarise([]*Priced{make("a", 1.0, 1.0), make("a", 1.2, 2.0), make("a", 1.1, 4.0), make("b", 9, 10),
		make("b", 8, 10.1)})
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	near("order", s.PairOrder, 2.0/3) // of three distinct pairs of a one is wrong; those of b are too close
	near("regret", s.Regret, (0+0.01)/2)
	near("rank correlation", s.Spearman, 0.5)
	near("mean", s.MeanAPE, (0+0.4+0.725+0.1+(1-8/10.1))/5)
	near("median", s.MedianAPE, 1-8/10.1)
}

// Notes say how an engine ran: each way changes what is priced, and nothing else of the engine.
func TestWays(t *testing.T) {
	head :=
		"source,model,layers,hidden,heads,seq_len,gpu,num_gpus,tp,pp,global_batch,precision,measured_step_s,recompute,zero_or_fsdp,note"
	question := func(source, rest string) *Question {
		q, err := NewAsker().Question(row(t, head, source+",m,4,512,8,128,H100,16,"+rest))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	eager := question("torchtitan", "1,1,16,bf16,1,,,eager")
	compiled := question("torchtitan", "1,1,16,bf16,1,,,torch.compile")
	if !(compiled.Problem.Engine.Elementwise < eager.Problem.Engine.Elementwise) {
		t.Errorf("element-wise traffic %v compiled, %v eager", compiled.Problem.Engine.Elementwise,
			eager.Problem.Engine.Elementwise)
	}
	if a, b := question("torchtitan", "8,1,16,bf16,1,,,async TP"),
		question("torchtitan", "8,1,16,bf16,1,,,vanilla TP"); a.Problem.Engine.HiddenTP == 0 ||
		b.Problem.Engine.HiddenTP != 0 {
		t.Errorf("hidden %v with async TP, %v without", a.Problem.Engine.HiddenTP, b.Problem.Engine.HiddenTP)
	}
	for source, want := range map[string]bool{"Megatron-LM SC21 Table 1": true, "Megatron-LM README Jan 2021": true,
		"Megatron-LM README": false, "Korthikanti 2022 Megatron": false} {
		if got := question(source, "2,2,16,fp16,1,,,").Problem.Engine.SeparateSums; got != want {
			t.Errorf("%s: sums apart %v, want %v", source, got, want)
		}
	}
	for source, want := range map[string]bool{"Megatron-LM SC21 Table 1": false, "Korthikanti 2022 Megatron": false,
		"MT-NLG 530B Megatron": false, "NVIDIA/Megatron-LM README": true} {
		if got := question(source, "2,2,16,fp16,1,,,").Problem.Engine.OverlapsInterleavedSends; got != want {
			t.Errorf("%s: sends of an interleaved schedule beside passes %v, want %v", source, got, want)
		}
	}
	type options struct {
		once, fused bool
		hidden      float64
		graphed     engines.Graphed
	}
	for note, want := range map[string]options{"A2A dispatcher": {}, "HybridEP": {once: true},
		"DeepEP; +1f1b a2a overlap": {once: true, hidden: overlappedEP},
		"EP overlap off":            {once: true}, "EP overlap on": {once: true, hidden: overlappedEP},
		"CUDA graphs of the step and fused experts": {once: true, graphed: engines.GraphedStep, fused: true},
		"CUDA graphs of attention and router":       {once: true, graphed: engines.GraphedDense},
		"CUDA graphs of the router":                 {once: true, graphed: engines.GraphedRouter},
		"no CUDA graphs":                            {once: true}} {
		e := question("Megatron-Bridge", "1,1,16,bf16,1,,,"+note).Problem.Engine
		got := options{once: e.Once, fused: e.FusedExperts, hidden: e.HiddenEP, graphed: e.Graphed}
		if got != want {
			t.Errorf("%s: %+v", note, got)
		}
	}
	if p := question("torchtitan", "2,2,16,bf16,1,full,3,").Plan; p.Zero != 1 || p.MicroBatch != 1 {
		t.Errorf("with a pipeline zero %d, micro-batch %d", p.Zero, p.MicroBatch)
	}
	if p := question("fsdp", `1,1,16,bf16,1,selective,3,"every n-th block; HFU=0.75; recomputed MFU (6N)=0.6"`).
		Plan; p.Recompute != "full" || p.RecomputeLayers != 3 {
		t.Errorf("recompute %s of %d blocks, want full of 3 of 4: 0.75/0.6 is a quarter more, three quarters of "+
			"a third", p.Recompute, p.RecomputeLayers)
	}
}

// A row whose state was on the host, or that names two plans, is not priced as another one.
func TestRefusedNotes(t *testing.T) {
	head := "model,layers,hidden,heads,seq_len,gpu,num_gpus,global_batch,precision,measured_step_s,zero_or_fsdp,note"
	for rest, want := range map[string]string{"3,HF + full CPU offload": "offloaded",
		"3,optimizer offload=Y param offload=N":  "offloaded",
		"3,activations of 40 layers on the host": "offloaded", "3,optimizer offload=N param offload=N": "",
		"1 or 3 (see doc),": "leaves open"} {
		_, err := NewAsker().Question(row(t, head, "m,4,512,8,128,A100,8,8,bf16,1,"+rest))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}

// The reason why a row cannot be priced is reported.
func TestReasons(t *testing.T) {
	head := "model,layers,hidden,heads,seq_len,experts,cp,gpu,num_gpus,tp,pp,global_batch,precision,measured_step_s"
	for line, want := range map[string]string{
		"m,4,512,8,128,8,,A100,8,1,1,8,bf16,1":      "8 experts",
		"m,4,512,8,128,,128,A100,128,1,1,8,bf16,1":  "128 positions must split into two chunks per rank",
		"m,4,512,8,128,,,A100,8,16,1,8,bf16,1":      "must divide 8 GPUs",
		"m,4,512,8,128,,,A100,8,1,1,7,bf16,1":       "must divide the batch of 7",
		"m,4,512,8,128,,,A100,8,1,1,8,int3,1":       "precision int3",
		"m,4,512,8,128,,,A100,8,1,8,8,bf16,1":       "fewer than pp 8",
		"m,4,512,8,128,,,A100,8,1,1,8,bf16,":        "nothing was measured",
		"nobody-7b,,,,128,,,A100,8,1,1,8,bf16,1":    "not in the catalogue",
		"m,4,512,8,128,,,A100,8,1,1,8,bf16,fast":    `measured_step_s is "fast"`,
		"m,4,512,8,128,,,A100,8,1,1,8,bf16,-2":      `measured_step_s is "-2"`,
		"m,4,512,8,128,,,Abacus,8,1,1,8,bf16,1":     "GPU Abacus",
		"m,4,512,8,128,,,H1000,8,1,1,8,bf16,1":      "GPU H1000",
		"m,4,512,8,128,,,A100,,1,1,8,bf16,1":        "num_gpus is missing",
		"m,4,512,8,128,,,A100-SXM,12,1,1,12,bf16,1": "not a whole number of nodes",
	} {
		r := row(t, head, line)
		if _, err := NewAsker().Price(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// Columns are those that the code reads, each once.
func TestColumnsAreThoseRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`r\.(?:Text|lower|float|count|truth|measure)\("([a-z_]+)"`).
			FindAllStringSubmatch(string(text), -1) {
			read[m[1]] = true
		}
	}
	for _, c := range Columns {
		if !read[c.Name] {
			t.Errorf("column %s is read nowhere, or is there twice", c.Name)
		}
		if c.Doc == "" {
			t.Errorf("column %s has no meaning", c.Name)
		}
		delete(read, c.Name)
	}
	if len(read) > 0 {
		t.Errorf("columns %v are read and not listed", read)
	}
}

// All cells that a row lacks are named at once.
func TestLacks(t *testing.T) {
	for text, want := range map[string]string{
		"model,measured_step_s\ngpt2-124m,3":             "seq_len, gpu and num_gpus are missing",
		"model,num_gpu,gpu,seq_len\ngpt2-124m,8,A100,1k": "num_gpus (num_gpu is no column) is missing",
		"model,num_gpus,gpu,seq_len\ngpt2-124m,eight,A100,0": `seq_len is "0"; it must be a whole number ` +
			`above 0; num_gpus is "eight"; it must be a whole number above 0`,
		"hidden,num_gpus,gpu,seq_len\n64,8,,1024":                    "gpu is missing",
		"model,num_gpus,gpu,seq_len,measured_step_s\n,8,A100,1024,1": "model is missing",
	} {
		rows, err := Parse("t.csv", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewAsker().Question(&rows[0]); err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
