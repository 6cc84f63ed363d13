package spec

import (
	"strconv"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Values of train.padding_row.
const (
	frozen  = "frozen"
	trained = "trained"
)

// paddingToken returns pad_token_id as text, "" if there is none or if transformers does not treat it specially in the
// family.
func paddingToken(m *strict.Node, f family) string {
	if f.padding == "" {
		return ""
	}
	for _, field := range m.Fields {
		if field.Key == "pad_token_id" {
			return field.Value.Text
		}
	}
	return f.padding
}

// paddingRow returns Config.PaddingRow for a token. A negative token counts from the end, as in PyTorch's nn.Embedding.
func paddingRow(token string, vocab int) int {
	id, err := strconv.Atoi(token)
	if err == nil && id < 0 {
		id += vocab
	}
	if err != nil || id < 0 || id >= vocab {
		return 0
	}
	return 1 + id
}

// paddingRow decides whether lookups of the model's pad_token_id train its row.
func (j *Job) paddingRow(diags *ir.Diags) {
	if j.Config == nil {
		return
	}
	says := j.Train.PaddingRow
	if says == frozen && j.Config.PaddingRow == 0 {
		diags.Addf(j.Pos("train.padding_row"), Conflict,
			"train.padding_row is frozen, but %s has no padding row: its pad_token_id is null or outside the "+
				"vocabulary, or its family %s has none; remove train.padding_row, or set model.pad_token_id",
			j.Config.Name, j.Config.Family)
	}
	if says == trained || says == "" && j.Train.Init == "random" {
		j.Config.PaddingRow = 0
	}
}
