// Package main measures whole training steps of planc's programs: as a share of the multiply-adds that the cores can
// do, and beside PyTorch 2 on the same cores, in turn.
//
//	go run ./bench/step -models nano,mid,gpt2 -threads 1
//	go run ./bench/step -models mid -threads 2 -peer compile -python DIR/bin/python
//
// Each model is written as a job, compiled by planc, and run for some steps in each round; then the peer (peer.py,
// alive between its turns) runs as many. Both print what a step took; medians over all rounds are compared. Begin in
// main.go; models.go has the models and the count of flops, calls.go times each call of a kernel, README.md has the
// peer's settings and how to get it.
package main
