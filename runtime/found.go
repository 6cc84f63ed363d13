package runtime

// Finders are [Devices] that say, once all ranks have taken theirs, which libraries they found and what these do, a
// line each: "NCCL 2.30.7: …".
type Finders interface {
	Found() []string
}

// found prints the lines.
func (r *run) found() {
	if f, ok := r.p.Devices.(Finders); ok {
		for _, text := range f.Found() {
			r.report.say(text, "found", "what", text)
		}
	}
}
