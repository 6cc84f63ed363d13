"""Stands in for torch and the packages around it, so that trainers' parsers can be imported without them.

Importing this module makes `import torch`, `import triton.language as tl` and so on succeed. Every attribute of such a
module is a class that accepts any use at import time: as a base class, a decorator, a type in annotations, a context
manager, or a value in comparisons. Only dtypes and the version are meaningful, because parsers read them.
"""
import functools
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
import typing

VERSION = "2.15.0"
PACKAGES = {
    "torch", "triton", "torchao", "torchvision", "torchdata", "datasets", "peft", "trl", "optimum", "bitsandbytes",
    "kernels", "scipy", "transformer_engine", "apex", "tokenizers", "transformers", "tensorboard", "wandb",
}
# Not installed on purpose: the trainers ask whether these exist and do without.
MISSING = {"transformer_engine", "apex", "wandb", "transformers"}


class Anything(typing._ProtocolMeta):  # also fits beside Protocol and ABC as a metaclass
    def __getattr__(cls, name):
        if name.startswith(("__", "_abc", "_is_")) or name == "_non_callable_proto_members_":
            raise AttributeError(name)
        return stub(name)

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __getitem__(cls, key):
        return cls

    def __iter__(cls):
        return iter(())

    def __lt__(cls, other):
        return False

    def __gt__(cls, other):
        return True

    __le__, __ge__ = __lt__, __gt__


def _call(self, *args, **kwargs):
    is_decorator = len(args) == 1 and not kwargs and callable(args[0])
    return args[0] if is_decorator else self


def _attribute(self, name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return stub(name)


@functools.cache
def stub(name):
    """Returns the class that stands for an attribute."""
    members = {
        "__init__": lambda self, *args, **kwargs: None,
        "__call__": _call,
        "__getattr__": _attribute,
        "__enter__": lambda self: self,
        "__exit__": lambda self, *args: None,
        "__bool__": lambda self: False,
        "__int__": lambda self: 0,
        "__index__": lambda self: 0,
        "__float__": lambda self: 0.0,
        "__len__": lambda self: 0,
        "__iter__": lambda self: iter(()),
        "__module__": "torch",
    }
    return Anything(name, (), members)


class dtype:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return self.name


DTYPES = {n: dtype(n) for n in (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64",
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")}
for _alias, _name in {"half": "float16", "float": "float32", "double": "float64", "long": "int64",
                      "int": "int32"}.items():
    DTYPES[_alias] = DTYPES[_name]


class StubModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "version":
            return VERSION
        if self.__name__ == "torch":
            if name == "dtype":
                return dtype
            if name in DTYPES:
                return DTYPES[name]
        return stub(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        root = name.partition(".")[0]
        if root in PACKAGES and root not in MISSING:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = StubModule(spec.name)
        module.__path__ = []
        module.__version__ = VERSION
        return module

    def exec_module(self, module):
        pass


def version(name, installed=importlib.metadata.version):
    """Returns the version of a package, as importlib.metadata.version does."""
    return VERSION if name in PACKAGES - MISSING else installed(name)


importlib.metadata.version = version
sys.meta_path.insert(0, Finder())
