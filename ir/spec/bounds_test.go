package spec

import (
	"reflect"
	"strings"
	"testing"
)

// Every whole number that a job or a config.json gives has a bound above, which is checked when it is read, or one
// value.
func TestEveryCountIsBounded(t *testing.T) {
	seen := 0
	unboundedOf(reflect.TypeFor[Job](), "", func(path string, bounded bool) {
		seen++
		if !bounded && path != "train.seed" {
			t.Errorf("job: %s has no max", path)
		}
	})
	for _, f := range families {
		unboundedOf(f.hf.absent.Type(), "", func(path string, bounded bool) {
			seen++
			if !bounded {
				t.Errorf("%s: %s has no max", f.name, path)
			}
		})
	}
	if seen < 200 {
		t.Errorf("only %d numbers were looked at", seen)
	}
}

// unboundedOf visits the whole numbers of a struct, and says whether their tags bound them.
func unboundedOf(typ reflect.Type, path string, visit func(path string, bounded bool)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		key := f.Tag.Get("yaml")
		if !f.IsExported() && !f.Anonymous || key == "-" {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Struct {
			if values, pin := kind.FieldByName("Values"); pin {
				kind = values.Type
			}
		}
		for kind.Kind() == reflect.Slice || kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Array {
			kind = kind.Elem()
		}
		switch kind.Kind() {
		case reflect.Int, reflect.Int64, reflect.Uint64:
			_, one := f.Tag.Lookup("now")
			visit(path+key, one || f.Tag.Get("max") != "" || f.Tag.Get("under") != "")
		case reflect.Struct:
			if key == "" {
				unboundedOf(kind, path, visit)
			} else {
				unboundedOf(kind, path+key+".", visit)
			}
		}
	}
}

// What is beyond a bound is refused where it is read, word for word.
func TestBeyondBounds(t *testing.T) {
	const job = "model: {base: gpt2-124m}\ntrain: {seq_len: 1024, global_batch: 8, steps: 1}\ncluster: 8xh100\n"
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"model.n_layer=8000"}, "n_layer is 8000; it must be at most 1024 [OutOfRange]"},
		{[]string{"model=deepseek-v3", "model.kv_lora_rank=2147483648"},
			"kv_lora_rank is 2147483648; it must be at most 65536 [OutOfRange]"},
		{[]string{"model=deepseek-v3", "model.n_routed_experts=1000000000"},
			"n_routed_experts is 1000000000; it must be at most 16384 [OutOfRange]"},
		{[]string{"plan.pp=1000000000"}, "plan.pp is 1000000000; it must be at most 128 [OutOfRange]"},
		{[]string{"plan.vpp=1000000000000000000"},
			"plan.vpp is 1000000000000000000; it must be at most 64 [OutOfRange]"},
		{[]string{"plan.tp=[8, 1000000000000]"}, "plan.tp[1] is 1000000000000; it must be at most 1e6 [OutOfRange]"},
		{[]string{"train.seq_len=100000000", "train.global_batch=100000000"},
			"train.global_batch 100000000 times train.seq_len 100000000 is 1e+16 tokens per step; planc supports at " +
				"most 1e+12: use at most train.global_batch 10000 [BadBatch]"},
		{[]string{"model.vocab_size=134217728", "train.global_batch=900000000"},
			"train.global_batch is 900000000; it must be at most 1e8 [OutOfRange]"},
		{[]string{"model.vocab_size=134217728", "train.global_batch=90000000"},
			"a step of 9.22e+10 tokens has values of 1.24e+19 elements in this model; planc supports at most 1e+17: " +
				"use at most train.global_batch 727595 [BadBatch]"},
	} {
		_, err := tryLoad(job, c.sets...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n%v\nwant\n%s", c.sets, err, c.want)
		}
	}
}
