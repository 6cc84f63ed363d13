package spec

// hfDecoder are the keys that Llama and its descendants share. A null means the same as an absent key, unless the tag
// null says otherwise.
type hfDecoder struct {
	ModelType string  `yaml:"model_type" doc:"the family"`
	Vocab     int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"number of tokens, or of rows that the token table has"`
	Hidden    int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	FFN       int     `yaml:"intermediate_size" min:"1" max:"4194304" doc:"width of the MLP's hidden layer"`
	Layers    int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"number of blocks"`
	Heads     int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"number of query heads"`
	KVHeads   int     `yaml:"num_key_value_heads" min:"1" max:"65536" null:"num_attention_heads" doc:"number of key/value heads"`
	HeadDim   int     `yaml:"head_dim" min:"1" max:"65536" doc:"hidden_size / num_attention_heads if absent"`
	Positions int     `yaml:"max_position_embeddings" min:"1" max:"134217728" doc:"sequence length that the model was trained for"`
	InitStd   float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	NormEps   float64 `yaml:"rms_norm_eps" over:"0" doc:"added to a norm's variance"`
	Tied      bool    `yaml:"tie_word_embeddings" doc:"the output layer shares the weights of the embedding"`
	Dropout   float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"dropout of attention weights"`
	Theta     float64 `yaml:"rope_theta" over:"0" doc:"base of the rotary frequencies; 10000 if absent, 1000000 in gemma3_text and mixtral"`
	Scaling   hfRope  `yaml:"rope_scaling" doc:"scaling of rotary positions, in the spelling of transformers 4"`
}

// hfWindows are the keys that choose the layers with sliding-window attention.
type hfWindows struct {
	Window int      `yaml:"sliding_window" min:"0" max:"134217728" null:"none" doc:"keys that a query of a local layer sees; 0: all"`
	Types  []string `yaml:"layer_types" enum:"full_attention,sliding_attention" doc:"attention of each layer"`
	unused string   // why the window is not used, if another key disables it
}

// activations maps config.json's names to planc's.
var activations = map[string]string{
	"gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "gelu": "gelu", "silu": "silu",
	"swish": "silu", "relu": "relu",
}
