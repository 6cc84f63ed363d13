package spec

// hfDecoder are the keys that llama and its descendants share. Null asks for what absent does, but where a tag says
// otherwise.
type hfDecoder struct {
	ModelType string  `yaml:"model_type" doc:"the family"`
	Vocab     int     `yaml:"vocab_size" min:"1" max:"134217728" doc:"tokens, or rows that the table has for them"`
	Hidden    int     `yaml:"hidden_size" min:"1" max:"1048576" doc:"width of the residual stream"`
	FFN       int     `yaml:"intermediate_size" min:"1" max:"4194304" doc:"width of the hidden layer of an MLP"`
	Layers    int     `yaml:"num_hidden_layers" min:"1" max:"1024" doc:"blocks"`
	Heads     int     `yaml:"num_attention_heads" min:"1" max:"65536" doc:"heads of queries"`
	KVHeads   int     `yaml:"num_key_value_heads" min:"1" max:"65536" null:"num_attention_heads" doc:"heads of keys and values"`
	HeadDim   int     `yaml:"head_dim" min:"1" max:"65536" doc:"hidden_size / num_attention_heads if absent"`
	Positions int     `yaml:"max_position_embeddings" min:"1" max:"134217728" doc:"positions that the model was made for"`
	InitStd   float64 `yaml:"initializer_range" min:"0" doc:"standard deviation of initial weights"`
	NormEps   float64 `yaml:"rms_norm_eps" over:"0" doc:"added to a norm's variance"`
	Tied      bool    `yaml:"tie_word_embeddings" doc:"the head is the embedding"`
	Dropout   float64 `yaml:"attention_dropout" min:"0" under:"1" doc:"of attention's weights"`
	Theta     float64 `yaml:"rope_theta" over:"0" doc:"base of rotary positions; 10000 if absent, 1000000 in gemma3_text and mixtral"`
	Scaling   hfRope  `yaml:"rope_scaling" doc:"how rotary positions are stretched, in the hub's spelling"`
}

// hfWindows say which layers see a window of keys only.
type hfWindows struct {
	Window int      `yaml:"sliding_window" min:"0" max:"134217728" null:"none" doc:"keys that a query of a local layer sees; 0 is all"`
	Types  []string `yaml:"layer_types" enum:"full_attention,sliding_attention" doc:"of each layer"`
	unused string   // why the window does not hold, if another key says so
}

// activations are by config.json's names.
var activations = map[string]string{
	"gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "gelu": "gelu", "silu": "silu",
	"swish": "silu", "relu": "relu",
}
