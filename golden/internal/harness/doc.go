// Package harness is what the packages of golden share: the module's source files and pages, the planc command, and how
// recorded texts are compared and recorded again.
package harness
