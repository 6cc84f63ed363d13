package costmodel

// What follows is data: go run ./validate in the folder tools writes this file, and a test there holds it up to date.

// errorBars are those of the rows in tools/validate/rows, without the tables that are held out of every fit.
var errorBars = []ErrorBar{
	{Like: Like{"", "", "", ""}, Rows: 445, Error: 0.206},
	{Like: Like{"deepspeed", "", "", ""}, Rows: 181, Error: 0.222},
	{Like: Like{"deepspeed", "sm_75", "", ""}, Rows: 47, Error: 0.19},
	{Like: Like{"deepspeed", "sm_75", "no", "several"}, Rows: 8, Error: 0.283},
	{Like: Like{"deepspeed", "sm_75", "yes", "several"}, Rows: 39, Error: 0.142},
	{Like: Like{"deepspeed", "sm_80", "", ""}, Rows: 127, Error: 0.222},
	{Like: Like{"deepspeed", "sm_80", "no", "one"}, Rows: 32, Error: 0.238},
	{Like: Like{"deepspeed", "sm_80", "yes", "one"}, Rows: 31, Error: 0.211},
	{Like: Like{"deepspeed", "sm_80", "yes", "several"}, Rows: 64, Error: 0.221},
	{Like: Like{"deepspeed", "sm_86", "", ""}, Rows: 6, Error: 0.22},
	{Like: Like{"deepspeed", "sm_86", "no", "one"}, Rows: 6, Error: 0.22},
	{Like: Like{"fsdp", "", "", ""}, Rows: 82, Error: 0.221},
	{Like: Like{"fsdp", "sm_80", "", ""}, Rows: 49, Error: 0.137},
	{Like: Like{"fsdp", "sm_80", "no", "one"}, Rows: 35, Error: 0.139},
	{Like: Like{"fsdp", "sm_80", "no", "several"}, Rows: 14, Error: 0.071},
	{Like: Like{"fsdp", "sm_86", "", ""}, Rows: 5, Error: 0.269},
	{Like: Like{"fsdp", "sm_86", "no", "one"}, Rows: 5, Error: 0.269},
	{Like: Like{"fsdp", "sm_90", "", ""}, Rows: 25, Error: 0.151},
	{Like: Like{"fsdp", "sm_90", "no", "one"}, Rows: 14, Error: 0.154},
	{Like: Like{"fsdp", "sm_90", "no", "several"}, Rows: 11, Error: 0.122},
	{Like: Like{"megatron", "", "", ""}, Rows: 117, Error: 0.107},
	{Like: Like{"megatron", "sm_100", "", ""}, Rows: 26, Error: 0.118},
	{Like: Like{"megatron", "sm_100", "no", "one"}, Rows: 8, Error: 0.097},
	{Like: Like{"megatron", "sm_100", "yes", "one"}, Rows: 7, Error: 0.126},
	{Like: Like{"megatron", "sm_100", "yes", "several"}, Rows: 11, Error: 0.108},
	{Like: Like{"megatron", "sm_103", "", ""}, Rows: 19, Error: 0.098},
	{Like: Like{"megatron", "sm_103", "yes", "one"}, Rows: 6, Error: 0.225},
	{Like: Like{"megatron", "sm_103", "yes", "several"}, Rows: 11, Error: 0.081},
	{Like: Like{"megatron", "sm_80", "", ""}, Rows: 37, Error: 0.066},
	{Like: Like{"megatron", "sm_80", "no", "one"}, Rows: 6, Error: 0.047},
	{Like: Like{"megatron", "sm_80", "no", "several"}, Rows: 12, Error: 0.102},
	{Like: Like{"megatron", "sm_80", "yes", "several"}, Rows: 19, Error: 0.06},
	{Like: Like{"megatron", "sm_90", "", ""}, Rows: 31, Error: 0.113},
	{Like: Like{"megatron", "sm_90", "yes", "several"}, Rows: 25, Error: 0.076},
	{Like: Like{"megatron with experts", "", "", ""}, Rows: 65, Error: 0.23},
	{Like: Like{"megatron with experts", "sm_100", "", ""}, Rows: 19, Error: 0.238},
	{Like: Like{"megatron with experts", "sm_100", "no", "one"}, Rows: 6, Error: 0.253},
	{Like: Like{"megatron with experts", "sm_100", "yes", "several"}, Rows: 13, Error: 0.169},
	{Like: Like{"megatron with experts", "sm_103", "", ""}, Rows: 26, Error: 0.149},
	{Like: Like{"megatron with experts", "sm_103", "no", "one"}, Rows: 11, Error: 0.14},
	{Like: Like{"megatron with experts", "sm_103", "yes", "several"}, Rows: 15, Error: 0.157},
	{Like: Like{"megatron with experts", "sm_90", "", ""}, Rows: 20, Error: 0.276},
	{Like: Like{"megatron with experts", "sm_90", "no", "one"}, Rows: 6, Error: 0.049},
	{Like: Like{"megatron with experts", "sm_90", "no", "several"}, Rows: 6, Error: 0.278},
	{Like: Like{"megatron with experts", "sm_90", "yes", "several"}, Rows: 8, Error: 0.254},
}

// shortestStep is the shortest measured one of these rows, in seconds.
const shortestStep = 0.0581

// measuredTypes are what their matmuls compute in, 5 rows or more each.
var measuredTypes = []string{"bf16", "fp16", "fp8", "mxfp8"}

// memoryDeviation is the deviation of what other runtimes than planc's take, as a part of what is predicted.
const memoryDeviation = 0.09
