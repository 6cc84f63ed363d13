package quantity_test

import (
	"fmt"

	"github.com/planc-dev/planc/planner/quantity"
)

func Example() {
	fmt.Println(quantity.Seconds(0.0413))
	fmt.Println(quantity.Seconds(27960))
	fmt.Println(quantity.Bytes(76665397248))
	fmt.Println(quantity.Signed(0.032))
	fmt.Println(quantity.Count(38016))
	// Output:
	// 41.3 ms
	// 7 h 46 min
	// 71.4 GiB
	// +3.2 %
	// 38,016
}
