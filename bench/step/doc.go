// Package main measures whole training steps of planc's programs as a share of the multiply-adds that the cores can do,
// and compares them with PyTorch 2 on the same cores, in alternating rounds.
//
//	go run ./bench/step -models nano,mid,gpt2 -threads 1
//	go run ./bench/step -models mid -threads 2 -peer compile -python DIR/bin/python
//
// Each model is written as a job and compiled by planc. In each round planc trains some steps, and then PyTorch
// (peer.py, which keeps running between its rounds) trains as many. Medians over all rounds are compared. Start in
// main.go. models.go has the models and counts flops, calls.go times each kernel call, and README.md explains the setup
// of PyTorch.
package main
