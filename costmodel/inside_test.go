package costmodel

import "testing"

// How many ranks a node has together is what trying all numbers finds, and takes no time for a million of them.
func TestInside(t *testing.T) {
	for stride := 1; stride < 20; stride++ {
		for n := 1; n < 40; n++ {
			for d := range 40 {
				want := 1
				for k := n; k > 1 && want == 1; k-- {
					if n%k == 0 && d%(stride*k) == 0 {
						want = k
					}
				}
				if got := inside(stride, n, d); got != want {
					t.Fatalf("%d ranks, %d apart, nodes of %d: %d, want %d", n, stride, d, got, want)
				}
			}
		}
	}
	if got := inside(1, 1<<60, 8); got != 8 {
		t.Errorf("%d, want 8", got)
	}
}

// A cluster has a bounded number of devices.
func TestMostDevices(t *testing.T) {
	_, err := Resolve(Ref{Node: "dgx-h100", Count: 100000}, nil, nil)
	if want := "100000 nodes of 8 devices are 800000 devices; planc supports at most 131072: use at most 16384 nodes " +
		"[BadCluster]"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
