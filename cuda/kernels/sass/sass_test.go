package sass

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// listing is what cuobjdump prints for two kernels: one with a loop over packs that are written element by element,
// one with a loop inside another.
const listing = `
	code for sm_90a
		Function : packs_bf16
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                    /* 0x00000a00ff017b82 */
                                                                             /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0x70 ;                                /* 0x0000000000027919 */
        /*0020*/               @P0 LDG.E.128 R4, desc[UR10][R4.64] ;         /* 0x0000000000027919 */
        /*0030*/                   STG.E.U16 desc[UR10][R2.64], R27 ;        /* 0x0000000000027919 */
        /*0040*/                   STG.E.U16 desc[UR10][R2.64+0x2], R28 ;    /* 0x0000000000027919 */
        /*0050*/             @!UP1 IADD3 R2, R2, 0x1, RZ ;                   /* 0x0000000000027919 */
        /*0060*/              @!P2 BRA 0x20 ;                                /* 0x0000000000027919 */
        /*0070*/                   STG.E.U16 desc[UR10][R2.64], R27 ;        /* 0x0000000000027919 */
        /*0080*/                   BRA 0x80;                                 /* 0x0000000000027919 */
		Function : nested_f32
        /*0000*/                   STL [R1], R2 ;                            /* 0x00000a00ff017b82 */
        /*0010*/                   LDS.128 R4, [R4] ;                        /* 0x0000000000027919 */
        /*0020*/                   FADD R4, R4, R5 ;                         /* 0x0000000000027919 */
        /*0030*/               @P0 BRA 0x10 ;                                /* 0x0000000000027919 */
        /*0040*/                   LDL R2, [R1] ;                            /* 0x0000000000027919 */
        /*0050*/                   BRA.U UP0, 0x0 ;                          /* 0x0000000000027919 */
`

func TestMeasure(t *testing.T) {
	functions := Parse(listing)
	if len(functions) != 2 {
		t.Fatalf("%d functions, want 2", len(functions))
	}
	for i, want := range []Counts{
		{Kernel: "packs_bf16", Narrow: 2, Loop: 5, Unit: "16 bytes"},
		{Kernel: "nested_f32", Local: 2, Loop: 3, Unit: "iteration"},
	} {
		got := Measure(&functions[i])
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Loops with tensor core instructions are measured per instruction of these, rounded up.
func TestMeasureTensorCores(t *testing.T) {
	matmuls := strings.NewReplacer("FADD R4", "HMMA.16816.F32.BF16 R4", "LDS.128", "HMMA.16816.F32")
	f := Parse(matmuls.Replace(listing))[1]
	got := Measure(&f)
	want := Counts{Kernel: "nested_f32", Local: 2, Loop: 2, Unit: "HMMA"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCheck(t *testing.T) {
	limits := []Counts{{"a", 0, 0, 10, "16 bytes"}, {"b", 0, 0, 10, "16 bytes"}, {"c", 1, 1, 1, "HMMA"}}
	counts := []Counts{{"a", 1, 2, 11, "16 bytes"}, {"b", 0, 0, 9, "iteration"}, {"d", 0, 0, 1, "HMMA"}}
	got := Check(limits, counts)
	want := []string{
		"a: 1 2-byte stores in loops over packs, allowed: 0",
		"a: 11 instructions in inner loops per 16 bytes, allowed: 10",
		"a: 2 accesses to spilled registers, allowed: 0",
		"b: its inner loop is measured per iteration, the limit is per 16 bytes",
		"c: the table has limits, but there is no such kernel",
		"d: the table has no limits for it",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := Check(limits, limits); got != nil {
		t.Errorf("counts within their limits: %q", got)
	}
}

// Limits of another compiler do not apply.
func TestHoldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sass.tsv")
	limits := []Counts{{"a", 0, 0, 10, "16 bytes"}}
	problems, skip, err := HoldFile(path, "nvcc 1.2.3 sm_90a", limits, true)
	if err != nil || skip != "" || problems != nil {
		t.Errorf("%q, %q, %v", problems, skip, err)
	}
	_, skip, err = HoldFile(path, "nvcc 1.2.4 sm_90a", nil, false)
	if err != nil || skip != path+": its limits are for nvcc 1.2.3 sm_90a, this is nvcc 1.2.4 sm_90a" {
		t.Errorf("%q, %v", skip, err)
	}
	problems, skip, err = HoldFile(path, "nvcc 1.2.3 sm_90a", nil, false)
	if err != nil || skip != "" || len(problems) != 1 {
		t.Errorf("%q, %q, %v", problems, skip, err)
	}
}

// A table reads as what was written, and its faults are reported with their line.
func TestLimits(t *testing.T) {
	counts := []Counts{{"a", 0, 1, 10, "16 bytes"}, {"b", 2, 0, 3, "HMMA"}}
	text := Format("nvcc 1.2.3 sm_90a", []Counts{counts[1], counts[0]})
	compiler, got, err := Limits(text)
	if compiler != "nvcc 1.2.3 sm_90a" || err != nil || !reflect.DeepEqual(got, counts) {
		t.Errorf("%q, %+v, %v of\n%s", compiler, got, err, text)
	}
	for text, want := range map[string]string{
		"":                           `line 1: want "# COMPILER" and "kernel\tnarrow\tlocal\tloop\tunit"`,
		text + "c\t1\n":              "line 5: 2 columns, want 5",
		text + "c\t1\tx\t1\tHMMA\n":  `line 5: strconv.Atoi: parsing "x": invalid syntax`,
		strings.ToUpper(text) + "\n": `line 1: want "# COMPILER" and "kernel\tnarrow\tlocal\tloop\tunit"`,
	} {
		_, _, err := Limits(text)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
