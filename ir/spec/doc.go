// Package spec reads what users write: the job file and models in the form of config.json.
//
// [Load] turns a job file and the overrides of a command line into a [Job], with all mistakes at once, each at
// its line and column. The structs of job.go, train.go and plan.go are the job file: their tags carry the
// keys, what is allowed, what works today, and who a field concerns (class):
//
//	d  decides the plan and is hashed into the lock
//	r  is run-time: not compiled in, changed by the program's own --set
//	c  is compiled in and decides nothing
//
// A [Config] is a model in planc's own words; families and their keys are in confighf.go, the catalogue in
// models/. [CheckCompile] wants what planning does not need.
//
// What this package does not do: it reads files only through the function it is given, and it knows nothing
// of hardware. The precision that a job leaves open is chosen by [Job.SetDevice], when the cluster is known.
package spec
