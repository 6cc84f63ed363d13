// Package meet brings the processes of a launch together over TCP, and carries what their hosts tell each other.
//
// Process 0, the lead, listens at the launch's address; the others call it. Each says who it is. The lead refuses a
// caller that is no process of the launch (another program, an earlier launch, ranks that another process has), reports
// that, and goes on waiting: no caller can end a launch that is not yet complete. The address of a process that does
// not come is reported with how long was waited. Then the lead and each other process have a connection, over which all
// do the same calls in the same order: [Peers.Gather] brings messages to the lead, [Peers.Broadcast] one from it to
// all, [Peers.Exchange] all to all.
//
// When a process fails, or ends without a word, or is not heard of, all others are told, and every call returns that
// error.
//
// It is for a few kilobytes a step, and for checkpoints. What ranks compute with travels by NCCL. There is no
// encryption: whoever reaches the port within the time of joining, and knows the program's digest, is taken for a
// process of it. A caller that does not know the digest is told nothing of the launch, and the digest itself is not
// sent. Memory, connections and time that callers can take are bounded.
//
// Begin with [Join].
package meet
