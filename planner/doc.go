// Package planner is the library behind planc's commands and its browser page. It answers one question: with which
// parallel plan does this model train fastest on this cluster?
//
// The types follow the order of the work:
//
//   - [Question] is a job on its hardware. [Load] makes one from a job file or from overrides alone.
//   - [Decision] is what the search found for it. [Decide] also chooses the number of devices, if the job's objective
//     asks for the fewest devices, the lowest cost or the least energy.
//   - [Document] is a decision as planc prints it with --json. [NewDocument] makes it. Its methods add what takes
//     further searches: Explain, FindFaster, FindTightFit and AskWhyNot. [Document.Advice] lists all suggestions.
//   - [Sweep] asks one question for several numbers of devices, batches or sequence lengths. [RunSweep] answers it.
//
// The package does no I/O: files are read by a function that the caller passes. It formats no screens, and it builds
// for the browser (GOOS=js GOARCH=wasm). Input errors of the user are [ir.Diags] with a position; a job for which no
// plan fits is a [NoPlanError].
//
// Start reading at question.go, then decide.go and document.go. How the search works is described in package
// passes/search.
package planner
