package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A saved job asks the same question, from whatever folder.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "models", "mine", "config.json")
	job := filepath.Join(dir, "jobs", "job.yaml")
	files := map[string]string{
		config: `{"model_type": "gpt2", "n_layer": 3, "n_embd": 64, "n_head": 4, "n_positions": 64, "vocab_size": 256}`,
		job: "model: ../models/mine\ndata: {root: texts, train: [a.txt], valid: 0.1}\n" +
			"train: {seq_len: 32, global_batch: 8, steps: 5, eval: {sample: \"a: b # c\\nd: e\"}}\ncluster: " +
			"./here.yaml\nplan: {tp: [1, 2]}\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range []struct {
		path string
		sets []string
		file string // to save to
		want []string
	}{
		{"jobs/job.yaml", nil, "jobs/again.yaml", []string{"model: ../models/mine ", "  root: texts",
			"cluster: ./here.yaml "}},
		{"jobs/job.yaml", []string{"train.seq_len=16", "plan.tp=null"}, "saved.yaml", []string{"model: models/mine ",
			"  root: jobs/texts ", "cluster: jobs/here.yaml"}},
		{"jobs/job.yaml", []string{"model=models/mine/config.json"}, "jobs/deep/er/s.yaml",
			[]string{"model: ../../../models/mine/config.json ", "  root: ../../texts "}},
		{"", []string{"model=gpt2-124m", "cluster.node=dgx-h100", "train.global_batch=8", "train.seq_len=64"}, "q.yaml",
			[]string{"model: gpt2-124m                  # catalogue name,",
				"  node: dgx-h100                  # catalogue name, name of a GPU, or cluster file"}},
	} {
		var overrides []Override
		for _, s := range c.sets {
			overrides = append(overrides, SetFlag(s))
		}
		j, err := Load(c.path, os.ReadFile, overrides...)
		if err != nil {
			t.Fatal(err)
		}
		text := j.Save(c.file)
		for _, w := range c.want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %q:\n%s", c.file, w, text)
			}
		}
		second, err := Load(c.file, func(name string) ([]byte, error) {
			if name == c.file {
				return text, nil
			}
			return os.ReadFile(name)
		})
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		if a, b := clusterless(second), clusterless(j); !bytes.Equal(a, b) {
			t.Errorf("%s decides\n%s\nwas\n%s", c.file, a, b)
		}
		if a, b := second.Train.Eval.Sample, j.Train.Eval.Sample; a != b {
			t.Errorf("sample %q, was %q", a, b)
		}
		if a, b := filepath.Join(second.Dir, second.Data.Root), filepath.Join(j.Dir,
			j.Data.Root); len(j.Data.Train) > 0 && a != b {
			t.Errorf("%s: data are in %s, were in %s", c.file, a, b)
		}
	}
}

// clusterless is what decides the plan, the cluster's path whole.
func clusterless(j *Job) []byte {
	return bytes.ReplaceAll(j.Decides(), []byte("./"), nil)
}
