package kernels

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// mutation is a fault in a kernel's source that a test must detect.
type mutation struct{ file, right, wrong, test string }

var mutations = []mutation{
	{"fp8.cu", "> 0x600000", "> 0x700000", "TestFP8"},
	{"fp8.cu", "+ (bits >> shift & 1);", ";", "TestFP8"},
	{"fp8.cu", "		__syncthreads(); // the tile is complete\n", "", "TestFP8"},
	{"fp8.cu", "i0 + i >= rows ||", "", "TestFP8"},
	{"fp8.cu", "v[k] < 0 ? -v[k] : v[k]", "v[k]", "TestFP8"},
	{"norm.cu", "mean = overRow(mean, Plus()) / cols;", "mean = overRow(mean, Plus()) / (cols + 1);", "TestNorms$"},
	{"norm.cu", "rootOf(square + (A)eps)", "rootOf(square)", "TestNormsDX"},
	{"norm.cu", "write<N>(sum + i * cols + j, v);", "", "TestNormsOfSums"},
	{"norm.cu", "*to = acc ? *to + sum[k] : sum[k];", "*to = sum[k];", "TestNormsDGain"},
	{"norm.cu", "for (int y = 1; y < 8; y++)", "for (int y = 1; y < 7; y++)", "TestNormsDGain"},
	{"norm_grads.cu", "	__syncthreads(); // the previous sums have been read\n", "", "TestNormsGrads"},
	{"norm_grads.cu", "y < blockDim.y; y++)", "y < blockDim.y - 1; y++)", "TestNormsGrads"},
	{"norm_grads.cu", "d.at[p][k] - sum - v", "d.at[p][k] - v", "TestNormsGrads"},
	{"norm_grads.cu", "if (j < cols) f(p, j);", "f(p, j);", "TestNormsGrads"},
	{"norm_grads.cu", "g[k] + unit", "g[k]", "TestNormsGrads"},
	{"norm_grads.cu", "dbias.at[p][k] += d.at[p][k];", "dbias.at[p][k] += v.at[p][k];", "TestNormsGrads"},
	{"norm_grads.cu", "(i64)blockIdx.x * cols + j, sums", "j, sums", "TestNormsGrads"},
	{"base.cuh", "	__syncthreads(); // the values of the previous call have been read\n", "", "TestNorms$"},
	{"base.cuh", "return cols % packed<T> == 0 && ((... | (u64)p) & 15) == 0;", "return true;", "TestNorms$"},
	{"base.cuh", "return bf16{narrowBF16(x)};", "return bf16{(unsigned short)(__float_as_uint(x) >> 16)};",
		"TestNorms$"},
	{"reduce.cu", "min(from + per, rows)", "from + per", "TestSums"},
	{"reduce.cu", "x + i * rows * cols + j", "x + i * cols + j", "TestSumRowsEach"},
	{"reduce.cu", "if (v[k] - v[k] != 0)", "if (v[k] != v[k])", "TestNotFinite"},
	{"reduce.cu", "part[blockIdx.x] = sum;", "part[0] = sum;", "TestSumOfSquares"},
	{"reduce.cu", "norm - norm != 0 ||", "", "TestClip"},
	{"move.cu", "b + i / times * more", "b + i * more", "TestJoinAndPart"},
	{"move.cu", "then[d] + k - half[d]", "then[d] + k", "TestDropout"},
	{"move.cu", "i64 at = offset[last], step", "int at = offset[last], step", "TestDropout"},
	{"move.cu", "read<N>(w, members[m] + lo + i);", "read<N>(w, members[count - m] + lo + i);", "TestAllReduce$"},
	{"base.cuh", "return a != a || a > b ? a : b;", "return a > b ? a : b;", "TestAllReduce$"},
	{"base.cuh", "f(whole + i, Const<1>());", "f(i, Const<1>());", "TestCast"},
	{"move.cu", "2 * zigzag - 1 - k / 2", "k / 2", "TestGatherAndScatter"},
	{"move.cu", "min(lo + inner, total), total, zigzag", "lo + inner, total, zigzag", "TestGatherAndScatter"},
	{"move.cu", "(first + i / outer) * inner", "i / outer * inner", "TestGatherAndScatter"},
	{"move.cu", "v[k] = rounded<R>(v[k]);", "", "TestFillAndRound"},
	{"move.cu", "awaitPrevious(); fill<T>", "fill<T>", "TestFillAndRound"},
	{"move.cu", "awaitPrevious(); cast<U, T>(y, x, n);", "cast<U, T>(y, x, n); awaitPrevious();", "TestCast"},
	{"step.cu", "then + i - half", "then + i", "TestStepNumbers"},
	{"step.cu", "pair[1] = *loss - *loss != 0;", "pair[1] = 0;", "TestStepNumbers"},
	{"step.cu", "key = keyed(key, step[1]);", "", "TestDropKeys"},
	{"step.cu", "*skipped != 0 ? n + i : i", "i", "TestChoose"},
	{"step.cu", "int more = *retried != 0;", "int more = 0;", "TestExceeds"},
	{"experts.cu", "out += index[i] == -1 - e;", "out += index[i] == -e;", "TestCensus"},
	{"reduce.cu", "|| pair[2] != 0", "", "TestClip"},
	{"base.cuh", "key << 23 | key >> 41", "key << 41 | key >> 23", "TestDropKeys"},
	{"attention.cuh", "min(p - then, n - half)", "min(p - then, n)", "TestAttention(Grad)?$"},
	{"attention.cuh", "j > i - s.window", "j >= i - s.window", "TestAttention(Grad)?$"},
	{"attention.cuh", "(2 * (i - n) + 1) / (2 * n)", "(2 * (i - n) + 2) / (2 * n)", "TestAttention$"},
	{"attention.cuh", "ds *= softcapGrad(x * (A)s.scale, (A)s.softcap);", "ds *= 1;", "TestAttentionGrad$"},
	{"attention.cuh", "p * (z * dp - dot)", "p * (dp - dot)", "TestAttentionGrad$"},
	{"attention.cuh", "s.seqAll;", "s.seq;", "TestAttention$"},
	{"attention.cuh", "* s.kheads + h", "* s.heads + h", "TestAttentionSideBySide"},
	{"attention.cu", "dq[(query0 + (i64)i * s.qheads) * s.dim + c] = ", "dq[(query0 + (i64)i * n) * s.dim + c] = ",
		"TestAttentionSideBySide"},
	{"attention.cu", "		__syncthreads(); // the previous contents have been read\n", "", "TestAttention$"},
	{"attention.cu", "		__syncthreads(); // p and factor have been read\n", "", "TestAttention$"},
	{"attention.cu", "out[r] *= factor[firstRow<W>() + r];", "", "TestAttention$"},
	{"attention.cu", "sum[r] = top[r] == none ? 0 : 1;", "sum[r] = 0;", "TestAttention$"},
	{"attention.cu", "for (int g = 0; g < s.group; g++)", "for (int g = 0; g < 1; g++)", "TestAttentionGrad$"},
	{"attention.cu", "sum[r] = s.more && i < rows && c < s.dim ?", "sum[r] = false ?", "TestAttentionGrad$"},
	{"mma.cuh", "lane / 16 * 8 + lane % 8) * pitch<D> + k", "lane / 8 % 2 * 8 + lane % 8) * pitch<D> + k",
		"TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "		__syncthreads(); // this step's tiles have been read\n", "",
		"TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "		__syncthreads(); // this step's tiles have arrived\n", "",
		"TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "copyWait<1>();", "copyWait<2>();", "TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "j0 + N <= end && allSee", "allSee", "TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "|| threadIdx.x % 4 > 0 ? 0 : 1", "? 0 : 1", "TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "sum *= f;", "", "TestAttentionOnTensorCores"},
	{"attention_mma.cuh", "<= queryAt(s, i0)", "<= queryAt(s, i0 + rows - 1)", "TestAttentionOnTensorCores"},
	{"attention_mma.cuh", "> queryAt(s, i0 + rows - 1) - s.window", "> queryAt(s, i0) - s.window",
		"TestAttentionOnTensorCores"},
	{"attention_mma.cuh", "x = softcap(", "x = softcapGrad(", "TestAttentionOnTensorCores"},
	{"attention_mma.cuh", "if (E & slopes)", "if (false)", "TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "!(E & slopes) && all ?", "all ?", "TestAttentionOnTensorCores"},
	{"attention_mma_forward.cuh", "if (E & drops)", "if (false)", "TestAttentionOnTensorCores"},
	{"attention.cuh", "if (!has<E>(drops, s.drops))", "if (E != asks)", "TestAttentionGradOnTensorCores"},
	{"attention.cuh", "if (has<E>(caps, s.softcap > 0))", "if (E == asks)", "TestAttentionGradOnTensorCores"},
	{"attention_mma_grad.cuh", "copyWait<1>();", "copyWait<2>();", "TestAttentionGradOnTensorCores"},
	{"attention_mma_grad.cuh", "		__syncthreads(); // this step's tiles have been read\n", "",
		"TestAttentionGradOnTensorCores"},
	{"attention_mma_grad.cuh", "known[(step * 2 + 1) * N + i];", "known[N + i];", "TestAttentionGradOnTensorCores"},
	{"attention_mma_grad.cuh", "h * s.group + u / steps);", "h * s.group);", "TestAttentionGradOnTensorCores"},
	{"optimizer.cu", "(rootOf(second[k]) * r.root + r.eps)", "rootOf(second[k] * r.root * r.root + r.eps)", "TestAdam"},
	{"optimizer.cu", "if (clip[2] != 0) return;", "", "TestSkippedStep"},
	{"optimizer.cu", "next += i % width * numbers[4 + 2 * d]", "next += i % width", "TestStochasticRounding"},
	{"optimizer.cu", "next = numbers[1]", "next = 0", "TestStochasticRounding"},
	{"optimizer.cu", "i += numbers[0]", "", "TestStochasticRounding"},
	{"optimizer.cu", "numbers[3] - i % numbers[3]", "numbers[3]", "TestStochasticRounding"},
	{"optimizer.cu", "randomBits(*key, next++)", "randomBits(*key, i)", "TestStochasticRounding"},
	{"loss.cu", "j < valid; j += blockDim.x) {", "j < whole; j += blockDim.x) {", "TestLogSumExpAndPick$"},
	{"power.cuh", "m == -(A)__uint_as_float(0x7f800000u) ? (A)0 :", "", "TestLogSumExpAndPick$"},
	{"loss.cu", "minOf(to - from, (A)0)", "to - from", "TestLogSumExpAndPick$"},
	{"loss.cu", "s.sum * drift(s.most, s.base)", "s.sum", "TestCrossEntropy"},
	{"loss.cu", "A sum = s.sum * rescale(s.base, b);", "A sum = s.sum;", "TestCrossEntropy"},
	{"loss.cu", "at - whole) / N % blockDim.x", "at - whole) % blockDim.x", "TestCrossEntropy"},
	{"loss.cu", "at - whole) / N", "at - whole + N) / N", "TestLogSumExpAndPickGrad"},
	{"loss.cu", "s.base, -dl, at", "s.base, dl, at", "TestCrossEntropy"},
	{"loss.cu", "v[k] = j + k < valid ?", "v[k] = true ?", "TestLogSumExpAndPickGrad"},
	{"loss.cu", "0x7f800000u) ? 0 : valid;", "0x7f800000u) ? valid : valid;", "TestLogSumExpAndPickGrad"},
	{"rope.cu", "i % seq * half, *s", "i * half, *s", "TestRope"},
	{"rope.cu", "y + i * ld", "y + i * heads * dim", "TestRope"},
	{"rope.cu", "heads * dim, ld);\n		else", "heads * dim, ld - 8);\n		else", "TestRope"},
	{"rope.cu", "(k < from ? k : k + turn)", "k + turn", "TestRope"},
	{"embed.cu", "		__syncthreads(); // the previous sums have been read\n", "", "TestEmbedGrad"},
	{"embed.cu", "const T* row = r < 0 ? nullptr :", "const T* row =", "TestEmbed$"},
	{"experts.cu", "		__syncthreads(); // the previous counts have been read\n", "",
		"TestExperts|TestTallyAndLimit"},
	{"experts.cu", "if (k >= filled) from", "if (k > filled) from", "TestExperts"},
	{"experts.cu", "(mine < 0 && e == 0 && i < choices)", "false", "TestExperts"},
	{"experts.cu", "acc ? y + j : nullptr", "y + j", "TestExperts"},
	{"experts.cu", "r < most ? e", "r <= most ? e", "TestTallyAndLimit"},
	{"reduce.cu", "if (grows || consecutive)", "if (grows)", "TestScaler"},
	{"optimizer.cu", "else if (load < choices)", "else", "TestLevel"},
	{"route.cu", "(other == most && there < at)", "(other == most && there > at)", "TestRoute$"},
	{"route.cu", "good[g] = sigmoid ? one + two : one;", "good[g] = one;", "TestRoute$"},
	{"route.cu", "s = share ? (d - dot) / sum : d;", "s = share ? d / sum : d;", "TestRouteGrad"},
	{"route.cu", "(of[e] - mean)", "(of[e] - mean * 0)", "TestBalance"},
	{"route.cu", "n + i / tokens * experts", "n", "TestBalance"},
}

// barriers lists files whose barriers are removed, and the tests that run them. Those on tensor cores take minutes
// for each barrier, and have rows in mutations.
var barriers = map[string]string{
	"attention.cu":  "TestAttention(Grad)?$",
	"base.cuh":      "TestNorms$",
	"embed.cu":      "TestEmbedGrad",
	"experts.cu":    "TestExperts",
	"fp8.cu":        "TestFP8",
	"norm.cu":       "TestNormsDGain",
	"norm_grads.cu": "TestNormsGrads",
	"reduce.cu":     "TestSum",
	"route.cu":      "TestRoute|TestBalance",
}

// unneeded lists barriers without which the tests have no race: other barriers are between, each lane reads only what
// it wrote, or a warp has only one row.
var unneeded = map[string][]int{"attention.cu": {5, 7, 8}, "route.cu": {0, 1, 4, 8, 11, 12, 13}}

var barrier = regexp.MustCompile(`__sync(threads|warp)\(\);`)

// mutate applies the fault that PLANC_MUTATION selects to the sources, or removes the barrier that PLANC_BARRIER
// selects by file and number.
func mutate(t testing.TB, files map[string][]byte) {
	if file, number, selected := strings.Cut(os.Getenv("PLANC_BARRIER"), ":"); selected {
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		at := barrier.FindAllIndex(files[file], -1)[n]
		files[file] = slices.Delete(slices.Clone(files[file]), at[0], at[1]-1) // an empty statement remains
	}
	i, err := strconv.Atoi(os.Getenv("PLANC_MUTATION"))
	if err != nil {
		return
	}
	m := mutations[i]
	if bytes.Count(files[m.file], []byte(m.right)) == 0 {
		t.Fatalf("mutation %d: %s has no %q", i, m.file, m.right)
	}
	files[m.file] = bytes.ReplaceAll(files[m.file], []byte(m.right), []byte(m.wrong))
}

// Each mutation fails its test, which runs again in a separate process with the fault in the source.
func TestMutations(t *testing.T) {
	if os.Getenv("PLANC_EMULATE") != "must" || os.Getenv("PLANC_MUTATION") != "" {
		t.Skip("takes minutes; PLANC_EMULATE=must runs it")
	}
	for i, m := range mutations {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			// there is one such process for each core
			cmd := exec.Command(os.Args[0], "-test.run="+m.test, "-test.timeout=5m", "-test.parallel=1")
			cmd.Env = append(os.Environ(), "PLANC_MUTATION="+strconv.Itoa(i))
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("%s: with %q for %q %s passes", m.file, m.wrong, m.right, m.test)
			}
			if emulate.Unjudged(out) {
				t.Errorf("%s: %q for %q is no fault that a test could see:\n%s", m.file, m.wrong, m.right, out)
			}
		})
	}
}

// Without any one of its barriers, a kernel has a race in shared memory, which is detected as such.
func TestMutationsOfBarriers(t *testing.T) {
	if os.Getenv("PLANC_EMULATE") != "must" || os.Getenv("PLANC_MUTATION")+os.Getenv("PLANC_BARRIER") != "" {
		t.Skip("takes minutes; PLANC_EMULATE=must runs it")
	}
	files := sourceFiles(t)
	for name, test := range barriers {
		for n := range barrier.FindAllIndex(files[name], -1) {
			if slices.Contains(unneeded[name], n) {
				continue
			}
			at := fmt.Sprint(name, ":", n)
			t.Run(at, func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(os.Args[0], "-test.run="+test, "-test.timeout=5m", "-test.parallel=1")
				cmd.Env = append(os.Environ(), "PLANC_BARRIER="+at)
				out, err := cmd.CombinedOutput()
				if err == nil || !bytes.Contains(out, []byte("a race in shared memory")) {
					t.Errorf("without its barrier %d, no race is found in %s: %v\n%s", n, name, err, out)
				}
			})
		}
	}
}
