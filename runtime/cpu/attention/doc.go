// Package attention computes attention and its gradient on a CPU, block by block of keys, without storing
// the scores. A Shape describes a call, whose units run on the threads of a team. A worker computes a unit
// with its own memory: its multiplier multiplies blocks of queries by packed keys and values.
package attention
