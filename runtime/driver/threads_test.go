package driver

import "testing"

// Ranks × threads never exceed the processors, but that each rank has a thread; and no rank could have one more.
func TestThreadsFitTheProcessors(t *testing.T) {
	for processors := 1; processors <= 130; processors++ {
		for ranks := 1; ranks <= 130; ranks++ {
			each := threadsEach(processors, ranks)
			switch {
			case each < 1:
				t.Fatalf("%d processors, %d ranks: %d threads each", processors, ranks, each)
			case each > 1 && each*ranks > processors:
				t.Fatalf("%d processors, %d ranks: %d threads each are too many", processors, ranks, each)
			case (each+1)*ranks <= processors:
				t.Fatalf("%d processors, %d ranks: %d threads each, where one more would do", processors, ranks, each)
			}
		}
	}
}
