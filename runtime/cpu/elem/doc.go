// Package elem has what all kernels on a CPU share: element types, functions of one element, sums in a fixed
// order, and the positions of a rank's part of a dim.
package elem
