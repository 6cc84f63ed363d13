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

// NoShard returns the fields of train.precision for FSDP 1 with NO_SHARD: parameters, gradients and the optimizer's
// state stay in FP32, and gradients are all-reduced in the type of the matmuls.
// Source: PyTorch 2.9, distributed/fsdp/_runtime_utils.py: _post_backward_hook, _reduce_grad_no_shard.
func NoShard(compute, from string) []Field {
	fields := Autocast(compute, from)
	reduce := compute
	if compute == "fp8" {
		reduce = "bf16"
	}
	for i := range fields {
		if fields[i].Path == "train.precision.reduce" {
			fields[i].Value = reduce
		}
	}
	return fields
}

// Sharded returns the fields of train.precision for FSDP, which are those of planc's engine fsdp: each rank stores its
// part in FP32, gathers parameters and reduces gradients in the type of the matmuls.
func Sharded(compute, from string) []Field {
	return []Field{{Path: "train.precision.compute", Value: compute, From: from}}
}
