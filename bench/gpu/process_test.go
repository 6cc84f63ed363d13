package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The libraries of Python's wheels come before those that the environment names, and emulated ones before all.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	wheels := filepath.Join(dir, "cu13", "lib")
	if err := os.MkdirAll(wheels, 0o777); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\necho "+dir+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", "/own")
	for tiny, want := range map[bool]string{false: wheels + ":/own", true: "/own:" + wheels} {
		env := environment(t.Context(), python, tiny)
		if got := env[len(env)-1]; !strings.HasPrefix(got, "LD_LIBRARY_PATH="+want) {
			t.Errorf("%s, want %s first", got, want)
		}
	}
}
