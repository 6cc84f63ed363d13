package spec

// hfBERT is config.json of model_type bert.
type hfBERT struct {
	ModelType  string  `yaml:"model_type" doc:"the family"`
	Vocab      int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Hidden     int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	Layers     int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"number of blocks"`
	Heads      int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"number of heads"`
	FFN        int     `yaml:"intermediate_size" min:"1" max:"4194304" doc:"width of the MLP's hidden layer"`
	Activation string  `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the MLP and of the head"`
	Dropout    float64 `yaml:"hidden_dropout_prob" min:"0" under:"1" doc:"dropout of the embeddings and of each block's output before the residual sum"`
	Attn       float64 `yaml:"attention_probs_dropout_prob" min:"0" under:"1" doc:"dropout of attention weights"`
	Positions  int     `yaml:"max_position_embeddings" min:"1" max:"134217728" doc:"rows of the position table"`
	Types      int     `yaml:"type_vocab_size" min:"1" max:"65536" doc:"rows of the segment table"`
	InitStd    float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	NormEps    float64 `yaml:"layer_norm_eps" over:"0" doc:"added to a norm's variance"`
	Position   string  `yaml:"position_embedding_type" enum:"absolute,relative_key,relative_key_query" now:"absolute" doc:"absolute"`
	Decoder    bool    `yaml:"is_decoder" now:"false" doc:"false"`
	Cross      bool    `yaml:"add_cross_attention" now:"false" doc:"false"`
	Tied       bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
}

var bertDefaults = hfBERT{ModelType: BERT, Vocab: 30522, Hidden: 768, Layers: 12, Heads: 12, FFN: 3072,
	Activation: "gelu", Dropout: 0.1,
	Attn: 0.1, Positions: 512, Types: 2, InitStd: 0.02, NormEps: 1e-12, Position: "absolute", Tied: true}

func bertConfig(_ *source, hf *hfBERT) *Config {
	return &Config{Family: BERT, Vocab: hf.Vocab, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: hf.FFN,
		MaxPositions: hf.Positions, TokenTypes: hf.Types, Activation: activations[hf.Activation], NormEps: hf.NormEps,
		InitStd: hf.InitStd,
		Tied:    hf.Tied, DropEmbd: hf.Dropout, DropResid: hf.Dropout, DropAttn: hf.Attn, AttentionBias: true,
		QKVBias: true, MLPBias: true,
		PostNorm: true, EmbedNorm: true, Bidirectional: true, HeadBias: true, HeadTransform: true, EmbedScale: 1}
}

// hfViT is config.json of model_type vit.
type hfViT struct {
	ModelType  string            `yaml:"model_type" doc:"the family"`
	Labels     int               `yaml:"num_labels" min:"1" max:"65536" doc:"number of classes; the length of id2label, or 2, if absent"`
	Names      map[string]string `yaml:"id2label" doc:"names of the classes"`
	Hidden     int               `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	Layers     int               `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"number of blocks"`
	Heads      int               `yaml:"num_attention_heads" min:"1" max:"65536" doc:"number of heads"`
	FFN        int               `yaml:"intermediate_size" min:"1" max:"4194304" doc:"width of the MLP's hidden layer"`
	Activation string            `yaml:"hidden_act" enum:"silu,swish,gelu_new,gelu_pytorch_tanh,gelu_fast,gelu,relu" doc:"activation of the MLP"`
	Dropout    float64           `yaml:"hidden_dropout_prob" min:"0" under:"1" doc:"dropout of the embeddings and of each block's output before the residual sum"`
	Attn       float64           `yaml:"attention_probs_dropout_prob" min:"0" under:"1" doc:"dropout of attention weights"`
	InitStd    float64           `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	NormEps    float64           `yaml:"layer_norm_eps" over:"0" doc:"added to a norm's variance"`
	Image      int               `yaml:"image_size" min:"1" max:"65536" doc:"side length of an image in pixels"`
	Patch      int               `yaml:"patch_size" min:"1" max:"65536" doc:"side length of a patch in pixels"`
	Channels   int               `yaml:"num_channels" min:"1" max:"65536" doc:"colour channels"`
	QKVBias    bool              `yaml:"qkv_bias" now:"true" doc:"true"`
	Problem    string            `yaml:"problem_type" enum:"regression,single_label_classification,multi_label_classification" now:"single_label_classification" doc:"which loss is trained"`
}

var vitDefaults = hfViT{ModelType: ViT, Hidden: 768, Layers: 12, Heads: 12, FFN: 3072, Activation: "gelu",
	InitStd: 0.02, NormEps: 1e-12,
	Image: 224, Patch: 16, Channels: 3, QKVBias: true}

var vitSizes = keys{vocab: "num_labels", hidden: "hidden_size", layers: "num_hidden_layers",
	heads: "num_attention_heads", ffn: "intermediate_size"}

func vitConfig(s *source, hf *hfViT) *Config {
	switch n := len(hf.Names); {
	case hf.Labels == 0 && n == 0:
		hf.Labels = 2
	case hf.Labels == 0:
		hf.Labels = n
	case n > 0 && n != hf.Labels:
		s.diags.Addf(s.Pos("num_labels"), Conflict, "num_labels is %d, but id2label names %d classes", hf.Labels, n)
	}
	hf.Names = nil
	return &Config{Family: ViT, Vocab: hf.Labels, Hidden: hf.Hidden, Layers: hf.Layers, Heads: hf.Heads,
		KVHeads: hf.Heads, FFN: hf.FFN,
		Activation: activations[hf.Activation], NormEps: hf.NormEps, InitStd: hf.InitStd, DropEmbd: hf.Dropout,
		DropResid: hf.Dropout,
		DropAttn:  hf.Attn, AttentionBias: true, QKVBias: true, MLPBias: true, Bidirectional: true, HeadBias: true,
		ImageSize: hf.Image, PatchSize: hf.Patch, Channels: hf.Channels, EmbedScale: 1}
}
