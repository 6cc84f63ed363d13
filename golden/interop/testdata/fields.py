"""Names of the arguments of Lightning and of the fields of Megatron-Bridge, read from their source: importing them needs
torch. A question is "lightning" or "bridge"; the answer is {"keys": [[name, type, default], ...]}. The argument of the
script is the folder into which pip has unpacked both.
"""
import ast
import json
import pathlib
import sys

import driver  # first

ROOT = pathlib.Path(sys.argv[1])
CORE = pathlib.Path(json.__file__).parent  # replaced below
for entry in sys.path:
    if (pathlib.Path(entry) / "megatron" / "core").is_dir():
        CORE = pathlib.Path(entry)

STRATEGIES = (("fsdp", "FSDPStrategy"), ("deepspeed", "DeepSpeedStrategy"), ("ddp", "DDPStrategy"),
              ("model_parallel", "ModelParallelStrategy"))


def text(node):
    """Returns a default as JSON; null if it is no constant."""
    try:
        return json.dumps(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        return "null"


def arguments(path, name):
    """Returns the arguments of a class's __init__ with their defaults."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for f in node.body:
                if isinstance(f, ast.FunctionDef) and f.name == "__init__":
                    a = f.args
                    plain = a.posonlyargs + a.args
                    defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults) + list(a.kw_defaults)
                    for arg, d in list(zip(plain + a.kwonlyargs, defaults))[1:]:
                        yield arg.arg, "null" if d is None else text(d)


def lightning():
    base = ROOT / "lightning" / "pytorch"
    rows = {}
    for name, default in arguments(base / "trainer" / "trainer.py", "Trainer"):
        rows["trainer." + name] = default
    for file, cls in STRATEGIES:
        for name, default in arguments(base / "strategies" / (file + ".py"), cls):
            rows.setdefault("trainer.strategy.init_args." + name, default)
    return rows


# The mappings of run_config.yaml, with the classes whose fields they have.
GROUPS = {
    "model": ("GPTModelProvider", "MLATransformerConfig"), "train": ("TrainingConfig",),
    "ddp": ("DistributedDataParallelConfig",), "optimizer": ("OptimizerConfig",), "scheduler": ("SchedulerConfig",),
    "dist": ("DistributedInitConfig",), "rng": ("RNGConfig",), "validation": ("ValidationConfig",),
    "mixed_precision": ("MixedPrecisionConfig",), "comm_overlap": ("CommOverlapConfig",),
    "dataset": ("GPTDatasetConfig",), "logger": ("LoggerConfig",), "checkpoint": ("CheckpointConfig",),
    "tokenizer": ("TokenizerConfig",), "profiling": ("ProfilingConfig",), "ft": ("FaultToleranceConfig",),
    "rerun_state_machine": ("RerunStateMachineConfig",), "tensor_inspect": ("TensorInspectConfig",),
    "inprocess_restart": ("InProcessRestartConfig",), "nvrx_straggler": ("NVRxStragglerDetectionConfig",),
    "straggler": ("StragglerDetectionConfig",),
}


def bridge():
    classes = {}
    folders = [CORE / "megatron" / "core", CORE / "megatron" / "training", ROOT / "megatron" / "bridge"]
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            tree = ast.parse(path.read_text())
            renamed = {a.asname: a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append((node, renamed))
    rows = {}

    def walk(name, prefix, seen):
        for node, renamed in classes.get(name, []):
            if id(node) in seen:
                continue
            seen.add(id(node))
            for base in node.bases:
                word = ast.unparse(base).split(".")[-1]
                walk(renamed.get(word, word), prefix, seen)
            for s in node.body:
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and not s.target.id.startswith("_"):
                    rows.setdefault(prefix + s.target.id, "null" if s.value is None else text(s.value))

    for group, names in GROUPS.items():
        for name in names:
            walk(name, group + ".", set())
    return rows


def python(source):
    tree = ast.parse(source)
    imports, calls, sets = [], {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imports += [[node.module, a.name] for a in node.names]
        elif isinstance(node, ast.Call):
            calls.setdefault(ast.unparse(node.func), []).extend(k.arg for k in node.keywords)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            sets.append(ast.unparse(node.targets[0]))
    return {"imports": imports, "calls": calls, "sets": sets}


def titan(folder):
    """Lists the functions of the registries, and the fields of the configuration with their paths."""
    base = pathlib.Path(folder) / "torchtitan"
    functions, fields = [], []
    for path in sorted(base.glob("models/*/config_registry.py")):
        module = "torchtitan.models.%s.config_registry" % path.parent.name
        functions += [[module, n.name] for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
    for cls, prefix in (("TrainingConfig", "training."), ("ParallelismConfig", "parallelism.")):
        for node in ast.parse((base / "config" / "configs.py").read_text()).body:
            if isinstance(node, ast.ClassDef) and node.name == cls:
                fields += [prefix + s.target.id for s in node.body if isinstance(s, ast.AnnAssign)]
    for node in ast.parse((base / "distributed" / "activation_checkpoint.py").read_text()).body:
        if isinstance(node, ast.ClassDef):
            functions.append(["torchtitan.distributed.activation_checkpoint", node.name])
    return {"functions": functions, "fields": fields}


def answer(question):
    if isinstance(question, dict) and "python" in question:
        return python(question["python"])
    if isinstance(question, dict):
        return titan(question["titan"])
    rows = {"lightning": lightning, "bridge": bridge}[question]()
    return {"keys": [[k, "any", v] for k, v in rows.items()]}


driver.serve(answer)
