// Package team divides the work of kernels among threads. A job's parts depend only on the work, so that
// results do not depend on the number of threads. It also has pools of working memory, from which a core
// gets what it used last.
package team
