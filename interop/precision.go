package interop

// Autocast returns the fields of train.precision for PyTorch's autocast without FSDP: parameters, gradients and their
// all-reduce stay in FP32, and matmuls compute in another type.
func Autocast(compute, from string) []Field {
	fields := []Field{{Path: "train.precision.compute", Value: compute, From: from}}
	if compute == "f32" || compute == "f64" {
		return fields
	}
	for _, f := range [][2]string{{"params", "f32"}, {"grads", "f32"}, {"master", "none"}, {"reduce", "f32"}} {
		fields = append(fields, Field{Path: "train.precision." + f[0], Value: f[1], From: from})
	}
	return fields
}

// Sharded returns the fields of train.precision for FSDP, which are those of planc's engine fsdp: each rank stores its
// part in FP32, gathers parameters and reduces gradients in the type of the matmuls.
func Sharded(compute, from string) []Field {
	return []Field{{Path: "train.precision.compute", Value: compute, From: from}}
}
