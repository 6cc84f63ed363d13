package shell

import "testing"

// The command finds the files of a diff from the current folder.
func TestPatchFindsItsFiles(t *testing.T) {
	diff := func(name string) string { return "--- " + name + "\n+++ " + name + "\n@@ -1,1 +1,1 @@\n-a\n+++ b\n" }
	for _, c := range []struct{ diff, want string }{
		{diff("run.sh"), "patch"},
		{diff("run.sh") + diff("ds.json"), "patch"},
		{diff("sub/run.sh"), "patch -p0"},
		{diff("run.sh") + diff("sub/ds.json"), "patch -p0"},
		{diff("sub/run.sh") + diff("ds.json"), "patch -p0"},
		{diff("../run.sh"), "patch ../run.sh"},
		{diff("/data/my run.sh"), "patch '/data/my run.sh'"},
		{diff("../run.sh") + diff("../ds.json"), ""},
		{diff("standard input"), ""},
	} {
		if got := Patch(c.diff); got != c.want {
			t.Errorf("%q; want %q for\n%s", got, c.want, c.diff)
		}
	}
}
