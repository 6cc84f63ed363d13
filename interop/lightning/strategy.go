package lightning

import (
	"strings"

	"github.com/planc-dev/planc/interop"
)

// strategy is one of Lightning's strategies, by the name under which Trainer(strategy=NAME) finds it.
type strategy struct {
	name    string
	class   string // of lightning.pytorch.strategies
	kind    kind
	zero    int
	offload string // what it moves off the device, "" if nothing
}

// kind is a family of strategies.
type kind int

const (
	single kind = iota
	ddp
	fsdp
	deepspeed
	modelParallel
	unpriced // runs otherwise than planc prices
)

// package of the strategies' classes.
const strategiesPackage = "lightning.pytorch.strategies."

// strategies are those of Lightning 2.6.6 (strategies/*.py, register_strategies).
var strategies = []strategy{
	{"auto", "", ddp, 0, ""},
	{"ddp", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"ddp_find_unused_parameters_false", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"ddp_find_unused_parameters_true", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"ddp_spawn", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"ddp_fork", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"ddp_notebook", strategiesPackage + "DDPStrategy", ddp, 0, ""},
	{"fsdp", strategiesPackage + "FSDPStrategy", fsdp, 3, ""},
	{"fsdp_cpu_offload", strategiesPackage + "FSDPStrategy", fsdp, 3, interop.AllState},
	{"deepspeed", strategiesPackage + "DeepSpeedStrategy", deepspeed, 2, ""},
	{"deepspeed_stage_1", strategiesPackage + "DeepSpeedStrategy", deepspeed, 1, ""},
	{"deepspeed_stage_2", strategiesPackage + "DeepSpeedStrategy", deepspeed, 2, ""},
	{"deepspeed_stage_2_offload", strategiesPackage + "DeepSpeedStrategy", deepspeed, 2, interop.OptimizerState},
	{"deepspeed_stage_3", strategiesPackage + "DeepSpeedStrategy", deepspeed, 3, ""},
	{"deepspeed_stage_3_offload", strategiesPackage + "DeepSpeedStrategy", deepspeed, 3, interop.AllState},
	{"deepspeed_stage_3_offload_nvme", strategiesPackage + "DeepSpeedStrategy", deepspeed, 3, interop.AllState},
	{"single_device", strategiesPackage + "SingleDeviceStrategy", single, 0, ""},
	{"model_parallel", strategiesPackage + "ModelParallelStrategy", modelParallel, 3, ""},
	{"xla", strategiesPackage + "XLAStrategy", unpriced, 0, ""},
	{"xla_fsdp", strategiesPackage + "XLAFSDPStrategy", unpriced, 0, ""},
	{"dp", "", unpriced, 0, ""},
}

// strategyNamed returns a strategy by its name, whatever its case; nil if there is none.
func strategyNamed(name string) *strategy {
	for i := range strategies {
		if strings.EqualFold(strategies[i].name, name) {
			return &strategies[i]
		}
	}
	return nil
}

// strategyOfClass returns a strategy by its class, which LightningCLI also takes without its package; nil if there is
// none.
func strategyOfClass(class string) *strategy {
	last := class[strings.LastIndexByte(class, '.')+1:]
	for i := range strategies {
		known := strategies[i].class
		if known != "" && known[strings.LastIndexByte(known, '.')+1:] == last {
			return &strategies[i]
		}
	}
	return nil
}

// strategyNames lists the names that users may type.
func strategyNames() (names []string) {
	for _, s := range strategies {
		if s.kind != unpriced {
			names = append(names, s.name)
		}
	}
	return names
}

// sharding is a sharding strategy of FSDP.
type sharding struct {
	name    string
	zero    int
	isLocal bool // within a node
}

var shardings = []sharding{{"FULL_SHARD", 3, false}, {"SHARD_GRAD_OP", 2, false}, {"NO_SHARD", 0, false},
	{"HYBRID_SHARD", 3, true}, {"_HYBRID_SHARD_ZERO2", 2, true}}

func shardingNames() (names []string) {
	for _, s := range shardings {
		names = append(names, s.name)
	}
	return names
}

func shardingNamed(name string) sharding {
	for _, s := range shardings {
		if s.name == name {
			return s
		}
	}
	return shardings[0]
}
