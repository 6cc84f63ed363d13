// Package meet connects the processes of a launch over TCP, and carries the messages between their hosts.
//
// Process 0, the lead, listens at the launch's address, and the others connect to it and identify themselves. The lead
// refuses a caller that is not a process of the launch (another program, an earlier launch, ranks that another process
// already has), reports that, and continues to wait. No caller can end a launch that is not yet complete. If a process
// does not arrive in time, the error says which and how long was waited. The lead then has a connection to each other
// process. All processes make the same calls in the same order: [Peers.Gather] sends messages to the lead,
// [Peers.Broadcast] sends a message of the lead to all, and [Peers.Exchange] sends each message to all. Concurrently,
// [Peers.GatherInBackground] sends checkpoints to the lead.
//
// When a process fails, ends without a message, or is silent for too long, all others are notified, and every call
// returns that error.
//
// The package is made for a few kilobytes per step, and for checkpoints. Data of the computation travels by NCCL. There
// is no encryption: a caller that reaches the port while processes join, and knows the program's digest, counts as a
// process of the launch. A caller that does not know the digest learns nothing of the launch, and the digest itself is
// not sent. The memory, connections and time that callers can use up are bounded.
//
// Start reading at [Join].
package meet
