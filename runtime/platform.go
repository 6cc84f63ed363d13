package runtime

// Sizes are ints, so neither planc nor its programs build where an int has 32 bits. The Go compiler says so by this
// name.
const planc_runs_on_64_bit_platforms_only = 1 << 40

var _ int = planc_runs_on_64_bit_platforms_only
