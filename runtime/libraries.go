package runtime

// LibraryReporter is implemented by [Devices] that report, after all ranks have opened theirs, the libraries that they
// found and what they are used for, one line each: "NCCL 2.30.7: …".
type LibraryReporter interface {
	Libraries() []string
}

// reportLibraries prints the lines.
func (r *run) reportLibraries() {
	if f, ok := r.p.Devices.(LibraryReporter); ok {
		for _, text := range f.Libraries() {
			r.report.info(text, "found", "what", text)
		}
	}
}
