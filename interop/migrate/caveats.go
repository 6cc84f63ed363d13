package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// caveats say which keys of the files change the figures and are not priced: offload, adapters, preference training,
// ZeRO++, and optimizers that planc does not have. They follow the verdict in the message.
func (r *Report) caveats() (out []string) {
	for _, text := range []string{r.Offload, r.Adapters, preference(r.Keys), zeroPlusPlus(r.Keys),
		otherOptimizer(r.Keys)} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// preference says which keys of the files say that the training is of preferences or by reinforcement learning; "" if
// none does.
func preference(all []interop.Key) string {
	keys := listed(all, (*interop.Key).TrainsByPreference)
	if keys == "" {
		return ""
	}
	return "The file trains by preference or reinforcement learning (" + keys + "), which planc does not price yet: " +
		"step time and memory are those of one model and one pass over each sequence."
}

// zeroPlusPlus says which keys of the files configure ZeRO++; "" if none does.
func zeroPlusPlus(all []interop.Key) string {
	keys := listed(all, (*interop.Key).IsZeroPlusPlus)
	if keys == "" {
		return ""
	}
	return "The file uses ZeRO++ (" + keys + "), which planc does not price yet: step time and memory are without it."
}

// otherOptimizer says which optimizer of the files planc does not have; "" if it has them all.
func otherOptimizer(all []interop.Key) string {
	i := slices.IndexFunc(all, func(k interop.Key) bool { return k.NamesOtherOptimizer() })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("planc does not price the optimizer (%s) yet: step time and memory are those of AdamW.",
		strings.TrimSpace(all[i].Name+" "+all[i].Value))
}
