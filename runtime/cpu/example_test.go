package cpu_test

import (
	"fmt"

	"github.com/planc-dev/planc/runtime/cpu"
)

func ExampleTable() {
	k := cpu.Table[float32]()
	x, w, y := []float32{1, 2}, []float32{1, 0, 2, 0, 1, 3}, make([]float32, 3)
	k.MatMul(y, x, w, 1, 3, 2, false, false, false)
	for i := range y {
		y[i] = cpu.Relu(y[i] - 1.5)
	}
	fmt.Println(y)
	// Output: [0 0.5 6.5]
}
