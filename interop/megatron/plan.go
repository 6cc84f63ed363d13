package megatron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// checkDegrees reports degrees that Megatron-LM refuses, because nothing can follow from them.
func (im *importer) checkDegrees() {
	for _, dest := range []string{"tensor_model_parallel_size", "pipeline_model_parallel_size",
		"context_parallel_size", "expert_model_parallel_size", "num_layers", "micro_batch_size", "hidden_size",
		"num_attention_heads"} {
		if im.s.has(dest) && im.s.number(dest) < 1 {
			im.fail(dest, "%s %s: the value must be at least 1", im.name(dest), im.s.text(dest))
		}
	}
	if im.s.text("micro_batch_size") == "" && len(im.s.arguments) > 0 && im.diags == nil {
		im.fail("micro_batch_size", "%s is missing, and Megatron-LM has no default: add %[1]s 1",
			im.name("micro_batch_size"))
	}
}

// planReader sets the fields of the plan.
type planReader struct{ *importer }

// read reads the parallel plan.
func (im *planReader) read() {
	s := im.s
	im.engine()
	tp, cp := s.number("tensor_model_parallel_size"), s.number("context_parallel_size")
	im.set("plan.tp", tp, "tensor_model_parallel_size")
	im.set("plan.pp", s.number("pipeline_model_parallel_size"), "pipeline_model_parallel_size")
	im.set("plan.cp", cp, "context_parallel_size")
	im.contextKind(cp)
	im.experts(tp)
	im.sequence(tp)
	im.pipeline()
	im.sharding()
	im.recompute(tp)
	im.order()
	im.set("plan.micro_batch", s.number("micro_batch_size"), "micro_batch_size")
}

// engine sets the engine: Megatron-FSDP is one of its own.
func (im *planReader) engine() {
	im.out.Engine = "megatron"
	dest := ""
	for _, flag := range []string{"use_megatron_fsdp", "use_torch_fsdp2"} {
		if im.s.flag(flag) {
			dest = flag
		}
	}
	if dest == "" {
		im.assume("train.engine", "megatron", "Megatron-LM")
		return
	}
	if im.s.number(pipelineSize) > 1 && dest == megatronFSDP {
		im.fail(pipelineSize, "%s %d: Megatron-LM runs pipelines with %s, but planc does not price them: use 1, or "+
			"remove %[3]s", im.name(pipelineSize), im.s.number(pipelineSize), im.name(dest))
	}
	im.out.Engine = "megatron-fsdp"
	im.set("train.engine", "megatron-fsdp", dest)
}

// contextKinds maps cp-comm-type to planc's kinds of context parallelism.
var contextKinds = map[string]string{"p2p": "ring", "all_gather": "gather", "a2a": "heads"}

func (im *planReader) contextKind(cp int) {
	const dest = "cp_comm_type"
	if cp == 1 {
		im.assume("plan.cp_kind", "none", "no context parallelism")
		return
	}
	text := im.s.text(dest)
	kind := contextKinds[strings.Fields(text + " ")[0]]
	if len(strings.Fields(text)) > 1 || kind == "" {
		im.fail(dest, "%s %s: planc prices one kind for all layers: p2p, all_gather or a2a", im.name(dest), text)
		return
	}
	im.set("plan.cp_kind", kind, dest)
}

// experts sets the degrees of experts. Expert tensor parallelism is tp by default, and has no effect on a model without
// experts: Megatron-LM itself sets it to tp there, and prints it.
func (im *planReader) experts(tp int) {
	const dest = "expert_tensor_parallel_size"
	im.set("plan.ep", im.s.number("expert_model_parallel_size"), "expert_model_parallel_size")
	switch {
	case im.s.number("num_experts") == 0 && im.modelLayers == 0:
		im.assume("plan.etp", 1, "no experts")
	case im.s.number("num_experts") > 0 && im.s.has(dest) && tp%max(1, im.s.number(dest)) != 0:
		im.fail(dest, "%s %d: Megatron-LM runs it with %s %d, but planc prices only values that divide that",
			im.name(dest), im.s.number(dest), im.name("tensor_model_parallel_size"), tp)
	case im.s.has(dest), im.s.defaults[dest] != "":
		im.set("plan.etp", im.s.number(dest), dest)
	case im.s.number("num_experts") > 0:
		im.assume("plan.etp", tp, "default of "+im.name(dest))
	default:
		im.assume("plan.etp", 1, "no experts")
	}
}

// sequence sets sequence parallelism, which Megatron-LM disables without tensor parallelism.
func (im *planReader) sequence(tp int) {
	const dest = "sequence_parallel"
	if tp == 1 {
		im.assume("plan.sp", false, "no tensor parallelism")
		return
	}
	im.set("plan.sp", im.s.flag(dest), dest)
}

// pipeline sets the schedule and the layers of stages.
func (im *planReader) pipeline() {
	pp, layers := im.s.number("pipeline_model_parallel_size"), im.layers()
	if im.givenLayers > 0 && im.s.has(layersOfChunk) {
		layers = im.givenLayers // the number of chunks follows from the model that is trained
	}
	vpp, dest := im.virtualStages(pp, layers)
	im.set("plan.vpp", vpp, dest)
	why := fmt.Sprintf("%s %d", im.name("pipeline_model_parallel_size"), pp)
	switch {
	case pp == 1:
		im.assume("plan.schedule", "none", why)
		return
	case vpp > 1:
		im.set("plan.schedule", "interleaved", dest)
	default:
		im.assume("plan.schedule", "1f1b", why)
	}
	im.stageLayers(pp, vpp, layers)
}

// layers returns the number of layers.
func (im *importer) layers() int {
	if im.modelLayers > 0 {
		return im.modelLayers
	}
	if n := im.s.number("num_layers"); n > 0 {
		return n
	}
	return im.s.number("encoder_num_layers")
}

// virtualStages returns the number of chunks of a stage, and the setting that says it.
func (im *planReader) virtualStages(pp, layers int) (int, string) {
	const stages, perStage, layout = chunksOfStage, layersOfChunk, "pipeline_model_parallel_layout"
	given := slices.DeleteFunc([]string{stages, perStage, layout}, func(d string) bool { return !im.s.has(d) })
	if len(given) > 1 {
		im.fail(given[1], "%s and %s exclude each other: remove one", im.name(given[0]), im.name(given[1]))
		return 1, given[0]
	}
	switch {
	case im.s.has(stages):
		return max(1, im.s.number(stages)), stages
	case im.s.has(layout):
		counts := im.layout()
		if len(counts) == 0 || len(counts)%pp != 0 {
			im.fail(layout, "%s has %d stages, which pp %d does not divide", im.name(layout), len(counts), pp)
			return 1, layout
		}
		return len(counts) / pp, layout
	case im.s.has(perStage):
		n := im.s.number(perStage)
		total := layers + im.extraLayers()
		if total == 0 {
			im.fail(perStage, "%s %d: the number of layers is not in the script: add the model's config.json as a "+
				"second file", im.name(perStage), n)
			return 1, perStage
		}
		if n < 1 || total%(pp*max(1, n)) != 0 {
			fix := nearestNumbers(n, total, func(n int) bool { return total%(pp*n) == 0 })
			if fix != "" {
				fix = ": use " + fix
			}
			im.fail(perStage, "%s %d: %d layers in %d stages do not split into chunks of %[2]d%[5]s", im.name(perStage),
				n, total, pp, fix)
			return 1, perStage
		}
		return total / pp / n, perStage
	}
	return 1, stages
}

// extraLayers returns the number of embedding and loss that count as layers.
func (im *planReader) extraLayers() int {
	n := 0
	for _, dest := range []string{"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"} {
		if im.s.flag(dest) {
			n++
		}
	}
	return n
}

// layout returns the layers of each chunk of a pipeline layout: "E|t*3|(t|)*2,L". Stages are separated by |, t is a
// layer, E the embedding, L the loss, m a layer of multi-token prediction, x*3 repeats and commas are ignored.
func (im *planReader) layout() (counts []int) {
	text, ok := expandLayout(im.s.text("pipeline_model_parallel_layout"))
	if !ok {
		return nil
	}
	for _, stage := range strings.Split(text, "|") {
		counts = append(counts, strings.Count(stage, "t"))
	}
	return counts
}

// expandLayout expands repetitions. It returns false for a text that is no layout.
func expandLayout(text string) (string, bool) {
	text = strings.NewReplacer(",", "", " ", "").Replace(text)
	for {
		if len(text) > maxLayout {
			return "", false
		}
		open := strings.LastIndexByte(text, '(')
		if open < 0 {
			break
		}
		end := strings.IndexByte(text[open:], ')')
		if end < 0 {
			return "", false
		}
		end += open
		group, rest := text[open+1:end], text[end+1:]
		n, after := repetition(rest)
		group, ok := expandFlat(group)
		if !ok || n*len(group) > maxLayout {
			return "", false
		}
		text = text[:open] + strings.Repeat(group, n) + after
	}
	return expandFlat(text)
}

// maxLayout bounds the stages and layers of a layout.
const maxLayout = 1 << 16

// expandFlat expands x*3 in a text without parentheses.
func expandFlat(text string) (string, bool) {
	var b strings.Builder
	for len(text) > 0 {
		c := text[0]
		if !strings.ContainsRune("tELm|", rune(c)) {
			return "", false
		}
		n, rest := repetition(text[1:])
		if b.Len()+n > maxLayout {
			return "", false
		}
		b.WriteString(strings.Repeat(string(c), n))
		text = rest
	}
	return b.String(), true
}

// repetition reads "*3" in front of a text.
func repetition(text string) (n int, rest string) {
	digits, ok := strings.CutPrefix(text, "*")
	if !ok {
		return 1, text
	}
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(digits[:end])
	if err != nil || n > maxLayout {
		return 0, digits[end:]
	}
	return n, digits[end:]
}

// stageLayers pins the layers of each chunk if they are not split evenly.
func (im *planReader) stageLayers(pp, vpp, layers int) {
	const first, last, layout = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
		"pipeline_model_parallel_layout"
	if im.s.has(layout) {
		im.set("plan.stage_layers", yamlList(im.layout()), layout)
		return
	}
	counts, dest := []int(nil), ""
	switch {
	case im.s.has(first) || im.s.has(last):
		counts, dest = im.unevenEnds(pp, vpp, layers)
	case im.extraLayers() > 0:
		counts, dest = im.withExtraLayers(pp*vpp, layers)
	case layers > 0 && layers%(pp*vpp) != 0:
		im.unevenStages(pp, vpp, layers)
	}
	if counts != nil {
		im.set("plan.stage_layers", yamlList(counts), dest)
	}
}

// unevenStages reports stages or chunks that do not divide the layers, with values that do, if there are any.
func (im *planReader) unevenStages(pp, vpp, layers int) {
	dest, n, isGood := "pipeline_model_parallel_size", pp, func(n int) bool {
		return layers%(n*vpp) == 0 && (n > 1 || vpp == 1) && im.canHave(n)
	}
	if layers%pp == 0 || !im.s.has(dest) {
		dest, n, isGood = chunksOfStage, vpp, func(n int) bool { return n > 1 && layers%(pp*n) == 0 }
	}
	fix := im.name("pipeline_model_parallel_layout")
	if near := nearestNumbers(n, layers, isGood); near != "" {
		fix = near + ", or " + fix
	}
	words := fmt.Sprintf("%d stages", pp)
	if vpp > 1 {
		words += fmt.Sprintf(" of %d chunks", vpp)
	}
	im.fail(dest, "%s %d: %s do not divide %d layers: use %s", im.name(dest), n, words, layers, fix)
}

// nearestNumbers returns the good numbers next to one, up to a limit: "2 or 4"; "" if there is none.
func nearestNumbers(n, limit int, isGood func(int) bool) string {
	numbers := make([]int, limit)
	for i := range numbers {
		numbers[i] = i + 1
	}
	return ir.NearestNumbers(n, numbers, isGood)
}

// canHave reports whether a number of stages divides the devices and leaves whole micro-batches, as far as the script
// says them.
func (im *planReader) canHave(pp int) bool {
	ranks := im.s.number("tensor_model_parallel_size") * im.s.number("context_parallel_size") * pp
	if im.cluster == 0 || ranks == 0 {
		return true
	}
	batch, micro := im.s.number("global_batch_size"), max(1, im.s.number("micro_batch_size"))
	return im.cluster%ranks == 0 && batch%(micro*im.cluster/ranks) == 0
}

// unevenEnds returns the layers of chunks if the first or last stage has a number of its own.
func (im *planReader) unevenEnds(pp, vpp, layers int) ([]int, string) {
	const first, last = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
	stages, left, dest := pp, layers, first
	sizes := make([]int, pp)
	if im.s.has(first) {
		sizes[0] = im.s.number(first)
		stages, left = stages-1, left-sizes[0]
	}
	if im.s.has(last) {
		sizes[pp-1] = im.s.number(last)
		stages, left = stages-1, left-sizes[pp-1]
		if !im.s.has(first) {
			dest = last
		}
	}
	for i := range sizes {
		isFixed := i == 0 && im.s.has(first) || i == pp-1 && im.s.has(last)
		if !isFixed {
			sizes[i] = left / max(1, stages)
		}
	}
	sum := 0
	for _, n := range sizes {
		sum += n
		if n < 0 || n%vpp != 0 {
			im.fail(dest, "%s %d: a stage of %d layers does not split into %d chunks", im.name(dest),
				im.s.number(dest), n, vpp)
			return nil, dest
		}
	}
	if sum != layers {
		im.fail(dest, "%s %d: the other %d layers do not split over %d stages", im.name(dest), im.s.number(dest), left,
			stages)
		return nil, dest
	}
	counts := make([]int, pp*vpp)
	for i := range counts {
		counts[i] = sizes[i%pp] / vpp
	}
	return counts, dest
}

// withExtraLayers returns the layers of chunks if embedding and loss count as layers.
func (im *planReader) withExtraLayers(chunks, layers int) ([]int, string) {
	const embedding, loss = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
	total, dest := layers+im.extraLayers(), loss
	if im.s.flag(embedding) {
		dest = embedding
	}
	if total%chunks != 0 {
		im.fail(dest, "%s: %d layers with embedding and loss do not split into %d chunks", im.name(dest), total, chunks)
		return nil, dest
	}
	counts := make([]int, chunks)
	for i := range counts {
		counts[i] = total / chunks
	}
	if im.s.flag(embedding) {
		counts[0]--
	}
	if im.s.flag(loss) {
		counts[chunks-1]--
	}
	return counts, dest
}

// yamlList returns numbers as YAML.
func yamlList(counts []int) string {
	words := make([]string, len(counts))
	for i, n := range counts {
		words[i] = strconv.Itoa(n)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
