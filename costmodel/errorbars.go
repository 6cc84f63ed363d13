package costmodel

// What follows is data: go run ./validate in the folder tools writes this file, and a test there holds it up to date.

// errorBars are those of the rows in tools/validate/rows, without the tables that are held out of every fit.
var errorBars = []ErrorBar{
	{Like{"", "", "", ""}, 379, 0.214},
	{Like{"deepspeed", "", "", ""}, 181, 0.228},
	{Like{"deepspeed", "sm_75", "", ""}, 47, 0.191},
	{Like{"deepspeed", "sm_75", "no", "several"}, 8, 0.283},
	{Like{"deepspeed", "sm_75", "yes", "several"}, 39, 0.161},
	{Like{"deepspeed", "sm_80", "", ""}, 127, 0.229},
	{Like{"deepspeed", "sm_80", "no", "one"}, 32, 0.239},
	{Like{"deepspeed", "sm_80", "yes", "one"}, 31, 0.22},
	{Like{"deepspeed", "sm_80", "yes", "several"}, 64, 0.214},
	{Like{"deepspeed", "sm_86", "", ""}, 6, 0.241},
	{Like{"deepspeed", "sm_86", "no", "one"}, 6, 0.241},
	{Like{"fsdp", "", "", ""}, 86, 0.285},
	{Like{"fsdp", "sm_80", "", ""}, 49, 0.134},
	{Like{"fsdp", "sm_80", "no", "one"}, 35, 0.143},
	{Like{"fsdp", "sm_80", "no", "several"}, 14, 0.078},
	{Like{"fsdp", "sm_86", "", ""}, 5, 0.337},
	{Like{"fsdp", "sm_86", "no", "one"}, 5, 0.337},
	{Like{"fsdp", "sm_89", "", ""}, 5, 0.927},
	{Like{"fsdp", "sm_89", "no", "one"}, 5, 0.927},
	{Like{"fsdp", "sm_90", "", ""}, 25, 0.158},
	{Like{"fsdp", "sm_90", "no", "one"}, 14, 0.156},
	{Like{"fsdp", "sm_90", "no", "several"}, 11, 0.134},
	{Like{"megatron", "", "", ""}, 112, 0.195},
	{Like{"megatron", "sm_100", "", ""}, 45, 0.196},
	{Like{"megatron", "sm_100", "no", "one"}, 21, 0.185},
	{Like{"megatron", "sm_100", "yes", "one"}, 13, 0.165},
	{Like{"megatron", "sm_100", "yes", "several"}, 10, 0.189},
	{Like{"megatron", "sm_80", "", ""}, 37, 0.076},
	{Like{"megatron", "sm_80", "no", "one"}, 6, 0.055},
	{Like{"megatron", "sm_80", "no", "several"}, 12, 0.126},
	{Like{"megatron", "sm_80", "yes", "several"}, 19, 0.072},
	{Like{"megatron", "sm_90", "", ""}, 26, 0.209},
	{Like{"megatron", "sm_90", "yes", "several"}, 20, 0.208},
}

// memoryDeviation is the deviation of what other runtimes than planc's take, as a part of what is predicted.
const memoryDeviation = 0.098
