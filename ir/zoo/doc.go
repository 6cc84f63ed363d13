// Package zoo builds the logical graph of each model family from its configuration.
//
// A family is one file with three blocks: embed, block, head. A builder states shapes and regions and knows
// nothing of ranks. Start at [Build].
package zoo
