// Package zoo builds the logical graph of each model family from its configuration.
//
// A model consists of three segments: embed, block, head. They are composed of parts that all families share; a row of
// the table of families selects the parts, and the configuration sets the rest. A builder defines shapes and regions.
// Start reading at [Build].
//
// What this package does not do: it knows nothing of ranks or sharding.
package zoo
