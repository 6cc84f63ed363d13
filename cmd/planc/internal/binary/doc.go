// Package binary fills the tables that a training binary contains in addition to its program: the settings of the job,
// the description of the model, and the plan with its prediction.
package binary
