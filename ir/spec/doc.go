// Package spec reads what users write: the job file, and models in the form of Hugging Face's config.json.
//
// [Load] turns a job file and the overrides of a command line into a [Job]. It reports all input errors at once, each
// with its line and column. The structs in job.go, train.go and plan.go describe the job file: their tags hold the
// keys, the allowed values, the values that planc supports, and the class of a field:
//
//	d  decides the plan and is hashed into the lock
//	r  run-time: not compiled in, and changed by the program's own --set
//	c  compiled in, but decides nothing
//
// A [Config] is a model in planc's terms. The families and their keys are in confighf.go and its siblings, the
// catalogue is in models/. [CheckCompile] checks what compiling needs and planning does not. Start reading at load.go.
//
// What this package does not do: it reads files only through the function that the caller passes, and it knows nothing
// of hardware. [Job.SetDevice] chooses the precision that a job leaves open when the cluster is known.
package spec
