// Package costmodel predicts the time and memory of programs on hardware. It is pure arithmetic in typed units, without
// I/O.
//
// A [Cluster] is a GPU, a node and a network, from the catalogue or a user's file. Each figure of the catalogue has its
// source. Collectives take the minimum of α-β curves over the network tiers ([Cluster.CollectiveTime];
// docs/communication.md). Ops take a roofline ([Device.OpTime]). Memory is the program's arena plus the engine's
// overhead ([Cluster.MemoryOf]). A step is an event simulation of its schedule on a compute stream and a communication
// stream ([Step.Simulate]), with a lower bound in closed form ([Step.Floor]). Start reading at step.go. Package engines
// describes the runtimes that are priced.
//
// What this package does not do: it decides nothing. Package passes/search calls it and compares plans.
package costmodel
