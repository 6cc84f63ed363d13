package costmodel

// What follows is data: go run ./validate in the folder tools writes this file, and a test there holds it up to date.

// errorBars are those of the rows in tools/validate/rows, without the tables that are held out of every fit.
var errorBars = []ErrorBar{
	{Like{"", "", "", ""}, 379, 0.222},
	{Like{"deepspeed", "", "", ""}, 181, 0.222},
	{Like{"deepspeed", "sm_75", "", ""}, 47, 0.195},
	{Like{"deepspeed", "sm_75", "no", "several"}, 8, 0.286},
	{Like{"deepspeed", "sm_75", "yes", "several"}, 39, 0.15},
	{Like{"deepspeed", "sm_80", "", ""}, 127, 0.222},
	{Like{"deepspeed", "sm_80", "no", "one"}, 32, 0.238},
	{Like{"deepspeed", "sm_80", "yes", "one"}, 31, 0.211},
	{Like{"deepspeed", "sm_80", "yes", "several"}, 64, 0.221},
	{Like{"deepspeed", "sm_86", "", ""}, 6, 0.233},
	{Like{"deepspeed", "sm_86", "no", "one"}, 6, 0.233},
	{Like{"fsdp", "", "", ""}, 86, 0.294},
	{Like{"fsdp", "sm_80", "", ""}, 49, 0.15},
	{Like{"fsdp", "sm_80", "no", "one"}, 35, 0.181},
	{Like{"fsdp", "sm_80", "no", "several"}, 14, 0.053},
	{Like{"fsdp", "sm_86", "", ""}, 5, 0.336},
	{Like{"fsdp", "sm_86", "no", "one"}, 5, 0.336},
	{Like{"fsdp", "sm_89", "", ""}, 5, 0.928},
	{Like{"fsdp", "sm_89", "no", "one"}, 5, 0.928},
	{Like{"fsdp", "sm_90", "", ""}, 25, 0.169},
	{Like{"fsdp", "sm_90", "no", "one"}, 14, 0.172},
	{Like{"fsdp", "sm_90", "no", "several"}, 11, 0.125},
	{Like{"megatron", "", "", ""}, 112, 0.198},
	{Like{"megatron", "sm_100", "", ""}, 45, 0.197},
	{Like{"megatron", "sm_100", "no", "one"}, 21, 0.178},
	{Like{"megatron", "sm_100", "yes", "one"}, 13, 0.155},
	{Like{"megatron", "sm_100", "yes", "several"}, 10, 0.197},
	{Like{"megatron", "sm_80", "", ""}, 37, 0.08},
	{Like{"megatron", "sm_80", "no", "one"}, 6, 0.067},
	{Like{"megatron", "sm_80", "no", "several"}, 12, 0.1},
	{Like{"megatron", "sm_80", "yes", "several"}, 19, 0.078},
	{Like{"megatron", "sm_90", "", ""}, 26, 0.224},
	{Like{"megatron", "sm_90", "yes", "several"}, 20, 0.224},
}

// memoryDeviation is the deviation of what other runtimes than planc's take, as a part of what is predicted.
const memoryDeviation = 0.098
