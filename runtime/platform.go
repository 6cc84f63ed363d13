package runtime

// Sizes are ints, so neither planc nor its programs build on 32-bit platforms. This name makes the Go compiler's error
// say so.
const planc_runs_on_64_bit_platforms_only = 1 << 40

var _ int = planc_runs_on_64_bit_platforms_only
