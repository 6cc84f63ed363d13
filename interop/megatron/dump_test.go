package megatron

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// A log without world_size says the number of devices by the degrees.
func TestDevicesOfALogFollowFromItsDegrees(t *testing.T) {
	const head = "------------------------ arguments ------------------------\n" +
		"  data_parallel_size .............................. 4\n" +
		"  micro_batch_size ................................ 1\n" +
		"  num_layers ...................................... 8\n" +
		"  pipeline_model_parallel_size .................... 2\n" +
		"  tensor_model_parallel_size ...................... 4\n"
	const end = "-------------------- end of arguments ---------------------\n"
	for text, want := range map[string]int{
		head + end: 32,
		head + "  world_size ...................................... 64\n" + end: 64,
	} {
		im, err := Import([]interop.File{{Name: "run.log", Data: []byte(text)}}, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if im.Devices != want {
			t.Errorf("%d devices, want %d:\n%s", im.Devices, want, text)
		}
	}
}
