package feed

// Source is training data that the caller provides. A sample is SeqLen tokens and their labels. Samples are numbered
// from 0 through all epochs, and the same number must always give the same sample. Train and Valid may be called
// concurrently, each by one goroutine.
//
// The samples are checked. The run ends with ExitInput if a token is outside of the vocabulary, a counted label is not
// below it, unmasked is outside of 0 to len(labels), or no position of a step counts.
type Source interface {
	// Train fills tokens and labels with sample g. labels[i] is the model's target at position i; for text it is
	// tokens[i+1]. The first unmasked positions count, except those whose label is negative. Other positions add
	// nothing to loss and gradient, and may have any label. The model still reads their tokens, which may be 0. A full
	// sample returns len(tokens).
	Train(g int64, tokens, labels []int32) (unmasked int, err error)
	// TrainSamples returns the samples in an epoch. Only a job with train.epochs needs it.
	TrainSamples() int64
	// Valid is like Train, for g below ValidSamples.
	Valid(g int64, tokens, labels []int32) (unmasked int, err error)
	// ValidSamples returns the number of validation samples; 0 if there is no validation.
	ValidSamples() int64
}

// TypedSource is a [Source] for models with token types, such as BERT's two segments. Without it all types are 0.
// Sample g is the sample that Train or Valid gives for g.
type TypedSource interface {
	// TrainTypes fills types, one per position, for training sample g.
	TrainTypes(g int64, types []int32) error
	// ValidTypes is like TrainTypes, for a validation sample.
	ValidTypes(g int64, types []int32) error
}

// DocumentSource is a [Source] for jobs with data.document_mask, which require it. Attention does not cross the borders
// of its documents. Padding is a document of its own: tokens do not attend to it. Sample g is the sample that Train or
// Valid gives for g.
type DocumentSource interface {
	// TrainDocuments fills documents with the number of each position's document, for training sample g. The numbers
	// do not decrease from one position to the next.
	TrainDocuments(g int64, documents []int32) error
	// ValidDocuments is like TrainDocuments, for a validation sample.
	ValidDocuments(g int64, documents []int32) error
}

// ImageSource is a [Source] for models that read images; such models require it. Pixels holds one patch per position,
// in the order of the model's patch projection. Its previous content is arbitrary. Position 0 is the class token: what
// is written there is ignored, and its label is the class of the image. Train and Valid are still called for labels,
// and for tokens, which such a model does not read.
type ImageSource interface {
	// TrainPixels fills pixels, len(pixels)/SeqLen of them per position, for training sample g.
	TrainPixels(g int64, pixels []float32) error
	// ValidPixels is like TrainPixels, for a validation sample.
	ValidPixels(g int64, pixels []float32) error
}
