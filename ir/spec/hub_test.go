package spec

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// Models are found by the names that the hub has for them.
func TestHubModel(t *testing.T) {
	for id, want := range map[string]string{
		"meta-llama/Meta-Llama-3-8B": "llama3-8b", "meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b",
		"meta-llama/Llama-2-7b-hf": "llama2-7b",
		"openai-community/gpt2":    "gpt2-124m", "openai-community/gpt2-xl": "gpt2-1558m",
		"Qwen/Qwen2.5-7B": "qwen2.5-7b", "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
		"mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b", "mistralai/Mistral-7B-v0.3": "mistral-7b-v0.3",
		"google/gemma-2-9b-it":   "gemma2-9b",
		"EleutherAI/pythia-1.4b": "pythia-1.4b", "deepseek-ai/DeepSeek-V3": "deepseek-v3",
		"google-bert/bert-base-uncased": "bert-base",
		"someone/own-model":             "", "./gpt2": "", "../gpt2": "", "a/b/gpt2": "", "gpt2": "", "x/": "",
	} {
		if got := HubModel(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	read := func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	_, err := Load("", read, SetFlag("model=meta-llama/Meta-Llama-3-8B"))
	if err == nil || !strings.Contains(err.Error(), "did you mean llama3-8b? [NoFile]") ||
		errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
