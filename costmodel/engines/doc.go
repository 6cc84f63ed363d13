// Package engines describes how trainers behave that people run instead of planc's own binaries: Megatron, DeepSpeed,
// FSDP, HAI-LLM. They are needed to validate the model on published runs, and to check, import and export plans.
//
// An [Engine] is a row of [Engines]. Its constants say how fast its kernels are, which collectives overlap compute and
// how much memory it needs in addition to the plan's arena. [Engine.Layers] lists the kernels and collectives of its
// transformer layers. [PlanRules] say which plans it can run. [ErrorBarOf] returns the error of predictions, from the
// published runs of the engine. [Engine.Predict] combines a priced step with that error. Start reading at engine.go.
//
// What this package does not do: it prices no plan. Package passes/search prices one engine's plans as another's.
package engines
