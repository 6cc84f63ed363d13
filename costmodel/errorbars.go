package costmodel

// What follows is data: go run ./validate in the folder tools writes this file, and a test there holds it up to date.

// errorBars are those of the rows in tools/validate/rows, without the tables that are held out of every fit.
var errorBars = []ErrorBar{
	{Like{"", "", "", ""}, 445, 0.21},
	{Like{"deepspeed", "", "", ""}, 181, 0.222},
	{Like{"deepspeed", "sm_75", "", ""}, 47, 0.191},
	{Like{"deepspeed", "sm_75", "no", "several"}, 8, 0.283},
	{Like{"deepspeed", "sm_75", "yes", "several"}, 39, 0.161},
	{Like{"deepspeed", "sm_80", "", ""}, 127, 0.222},
	{Like{"deepspeed", "sm_80", "no", "one"}, 32, 0.238},
	{Like{"deepspeed", "sm_80", "yes", "one"}, 31, 0.211},
	{Like{"deepspeed", "sm_80", "yes", "several"}, 64, 0.221},
	{Like{"deepspeed", "sm_86", "", ""}, 6, 0.22},
	{Like{"deepspeed", "sm_86", "no", "one"}, 6, 0.22},
	{Like{"fsdp", "", "", ""}, 82, 0.208},
	{Like{"fsdp", "sm_80", "", ""}, 49, 0.137},
	{Like{"fsdp", "sm_80", "no", "one"}, 35, 0.139},
	{Like{"fsdp", "sm_80", "no", "several"}, 14, 0.071},
	{Like{"fsdp", "sm_86", "", ""}, 5, 0.269},
	{Like{"fsdp", "sm_86", "no", "one"}, 5, 0.269},
	{Like{"fsdp", "sm_90", "", ""}, 25, 0.151},
	{Like{"fsdp", "sm_90", "no", "one"}, 14, 0.154},
	{Like{"fsdp", "sm_90", "no", "several"}, 11, 0.122},
	{Like{"megatron", "", "", ""}, 117, 0.143},
	{Like{"megatron", "sm_100", "", ""}, 45, 0.155},
	{Like{"megatron", "sm_100", "no", "one"}, 10, 0.15},
	{Like{"megatron", "sm_100", "yes", "one"}, 13, 0.176},
	{Like{"megatron", "sm_100", "yes", "several"}, 22, 0.143},
	{Like{"megatron", "sm_80", "", ""}, 37, 0.064},
	{Like{"megatron", "sm_80", "no", "one"}, 6, 0.048},
	{Like{"megatron", "sm_80", "no", "several"}, 12, 0.119},
	{Like{"megatron", "sm_80", "yes", "several"}, 19, 0.055},
	{Like{"megatron", "sm_90", "", ""}, 31, 0.117},
	{Like{"megatron", "sm_90", "yes", "several"}, 25, 0.115},
	{Like{"megatron with experts", "", "", ""}, 65, 0.272},
	{Like{"megatron with experts", "sm_100", "", ""}, 45, 0.315},
	{Like{"megatron with experts", "sm_100", "no", "one"}, 17, 0.185},
	{Like{"megatron with experts", "sm_100", "yes", "several"}, 28, 0.358},
	{Like{"megatron with experts", "sm_90", "", ""}, 20, 0.264},
	{Like{"megatron with experts", "sm_90", "no", "one"}, 6, 0.14},
	{Like{"megatron with experts", "sm_90", "no", "several"}, 6, 0.266},
	{Like{"megatron with experts", "sm_90", "yes", "several"}, 8, 0.229},
}

// memoryDeviation is the deviation of what other runtimes than planc's take, as a part of what is predicted.
const memoryDeviation = 0.091
