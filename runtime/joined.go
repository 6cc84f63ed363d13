package runtime

// Joined are [Devices] that say how ranks are joined, once all have taken theirs: "NCCL 2.30.7: …"; "" where nothing joins them.
type Joined interface {
	Joined() string
}

// joined prints it.
func (r *run) joined() {
	if j, ok := r.p.Devices.(Joined); ok {
		if text := j.Joined(); text != "" {
			r.report.say(text, "joined", "by", text)
		}
	}
}
