package tensors

import "github.com/planc-dev/planc/runtime/ckpt"

func contentsOf[F Float](c *Stores) []ckpt.Content {
	p := c.program()
	return []ckpt.Content{
		content[F](c, ModelFile, []kind{weightKind(p)}),
		content[F](c, OptimizerFile, momentKinds(p)),
	}
}
