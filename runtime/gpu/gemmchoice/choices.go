//go:build cuda && linux

// Package gemmchoice keeps measured choices of how GEMMs are computed in a file. Runs that use a file have the same
// bits, because the same algorithms add in the same order. The package measures nothing itself.
package gemmchoice

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/planc-dev/planc/cuda"
)

// File is the environment variable that names a file of measured choices. If [Timing] is 1, the first step writes
// it. Otherwise all steps of all ranks use its choices, so that two runs give the same bits.
const File = "PLANC_GEMM_CHOICES"

// Timing is the environment variable that makes the first step measure: how fast several algorithms for each kind of
// GEMM are, and whether an epilogue is faster as a kernel of its own. Later steps use the fastest. Two runs may then
// round differently, as may copies that several ranks compute of the same values.
const Timing = "PLANC_TIME_PRODUCTS"

// Times reports whether the first step measures.
func Times() bool { return os.Getenv(Timing) == "1" }

// Choices are measured choices: how each kind of GEMM is computed. All ranks of the process share them.
type Choices struct {
	path  string // "" if there is no file
	mutex sync.Mutex
	file  contents
	used  map[string]bool // GEMMs of the file that a rank has
	other map[string]bool // GEMMs of a rank that the file does not have
}

// contents is the file. An algorithm is valid only for one version of cuBLASLt, and was the fastest only on one kind
// of GPU.
type contents struct {
	GPU      string            `json:"gpu"`
	CUBLASLt string            `json:"cublaslt"`
	GEMMs    map[string]Choice `json:"gemms"` // by Kind
}

// Choice is how a kind of GEMM is computed.
type Choice struct {
	Algorithm string  `json:"algorithm"` // cuBLASLt's cublasLtMatmulAlgo_t, in hexadecimal
	Seconds   float64 `json:"seconds"`   // of a GEMM by this algorithm
	// Separate means that the epilogue is computed by a kernel of its own, which was faster.
	Separate bool `json:"separate,omitempty"`
}

// Open returns the choices for a kind of GPU. It reads the file unless the first step is to write it.
func Open(gpu, version string) (*Choices, error) {
	c := &Choices{path: os.Getenv(File), used: map[string]bool{}, other: map[string]bool{},
		file: contents{GPU: gpu, CUBLASLt: version, GEMMs: map[string]Choice{}}}
	if c.path == "" || Times() {
		return c, nil
	}
	text, err := os.ReadFile(c.path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; %s=1 writes it", err, Timing)
		}
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	var file contents
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", File, c.path, err)
	}
	if file.GPU != gpu || file.CUBLASLt != version {
		return nil, fmt.Errorf("%s=%s was measured on %s with cuBLASLt %s, and this is %s with cuBLASLt %s: measure "+
			"again with %s=1", File, c.path, file.GPU, file.CUBLASLt, gpu, version, Timing)
	}
	c.file = file
	return c, nil
}

// reads reports whether the choices were read from a file.
func (c *Choices) reads() bool { return c.path != "" && !Times() }

// Lookup returns the choice for a kind of GEMM from the file.
func (c *Choices) Lookup(kind cuda.GEMM) (choice Choice, known bool) {
	if !c.reads() {
		return choice, false
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text := Kind(kind)
	choice, known = c.file.GEMMs[text]
	if known {
		c.used[text] = true
	} else {
		c.other[text] = true
	}
	return choice, known
}

// Add records a measured choice. If several ranks measure a kind, the fastest measurement counts.
func (c *Choices) Add(kind cuda.GEMM, a cuda.Algorithm, seconds float64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text := Kind(kind)
	if known, ok := c.file.GEMMs[text]; !ok || seconds < known.Seconds {
		c.file.GEMMs[text] = Choice{hex.EncodeToString(a[:]), seconds, known.Separate}
	}
}

// SetSeparate records that a kind of GEMM, which was measured, is slower than without its epilogue.
func (c *Choices) SetSeparate(kind cuda.GEMM) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	x := c.file.GEMMs[Kind(kind)]
	x.Separate = true
	c.file.GEMMs[Kind(kind)] = x
}

// Save writes the file with all choices so far.
func (c *Choices) Save() error {
	if c.path == "" || !Times() {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text, err := json.MarshalIndent(&c.file, "", "\t")
	if err != nil {
		return err
	}
	partial := fmt.Sprintf("%s.%d.partial", c.path, os.Getpid())
	if err := os.WriteFile(partial, append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(partial, c.path)
}

// Report says for the run's first lines which choices it uses. It is empty without a file.
func (c *Choices) Report() string {
	if !c.reads() {
		return ""
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	separate := 0
	for text := range c.used {
		if c.file.GEMMs[text].Separate {
			separate++
		}
	}
	text := fmt.Sprintf("%d kinds of GEMMs as measured in %s, %d of them with a separate kernel for the epilogue",
		len(c.used), c.path, separate)
	if n := len(c.other); n > 0 {
		text += fmt.Sprintf("; %d kinds are not in it and use cuBLASLt's first algorithm", n)
	}
	return text
}

// Kind identifies a kind of GEMM: sizes, types, transposes and the epilogue, whose number is cuBLASLt's.
func Kind(kind cuda.GEMM) string {
	text := fmt.Sprintf("%d×%d×%d %s", kind.M, kind.N, kind.K, valueNames[kind.In])
	if kind.InB != 0 {
		text += "·" + valueNames[kind.InB]
	}
	text += " to " + valueNames[kind.Out]
	if kind.Batch > 1 {
		text = fmt.Sprintf("%d × %s", kind.Batch, text)
	}
	for _, x := range []struct {
		is   bool
		name string
	}{{kind.TransposeA, "A transposed"}, {kind.TransposeB, "B transposed"}, {kind.TF32, "TF32"}} {
		if x.is {
			text += ", " + x.name
		}
	}
	if kind.Epilogue > cuda.Plain {
		text += fmt.Sprintf(", epilogue %d", kind.Epilogue)
	}
	return text
}

var valueNames = map[cuda.Value]string{cuda.ValueFloat32: "f32", cuda.ValueFloat64: "f64", cuda.ValueFloat16: "f16",
	cuda.ValueBFloat16: "bf16", cuda.ValueE4M3: "e4m3", cuda.ValueE5M2: "e5m2"}

// Decode returns the algorithm of a choice.
func (c Choice) Decode() (a cuda.Algorithm, err error) {
	bytes, err := hex.DecodeString(c.Algorithm)
	if err == nil && len(bytes) != len(a) {
		err = fmt.Errorf("an algorithm has %d bytes, not %d", len(a), len(bytes))
	}
	copy(a[:], bytes)
	return a, err
}
