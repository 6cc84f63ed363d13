// Package costmodel says what hardware does with a program: it is pure arithmetic in typed units, without I/O.
//
// A [Cluster] is a GPU, a node and a network, from the catalogue or a user's file; every figure of the catalogue has
// its source beside it. Collectives are the least of α-β curves over the tiers ([Cluster.CollectiveTime];
// docs/communication.md), ops a roofline ([Device.OpTime]), memory the program's arena and the engine's overhead
// ([Cluster.MemoryOf]), and a step an event simulation of its schedule over a compute and a communication stream
// ([Step.Simulate]), with a lower bound in closed form ([Step.Floor]). [Cluster.Predict] puts these together.
//
// It decides nothing: package passes/search asks it, and counts.
package costmodel
