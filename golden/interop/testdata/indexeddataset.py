"""Megatron's IndexedDataset and its builder.

A question is {"read": prefix} or {"write": prefix, "type": name, "documents": [[token, ...], ...]}. The answer to the
first is {"sequences": [[token, ...], ...], "documents": [first sequence, ...], "type": name}.
"""
import driver  # first

import numpy
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder


class Tensor:
    """What the builder needs of a tensor."""

    def __init__(self, tokens):
        self.tokens = numpy.array(tokens, dtype=numpy.int64)

    def numpy(self):
        return self.tokens

    def numel(self):
        return self.tokens.size


def answer(question):
    if "read" in question:
        data = IndexedDataset(question["read"], mmap=False)
        return {"sequences": [data[i].tolist() for i in range(len(data))], "documents": data.document_indices.tolist(),
                "type": data.index.dtype.__name__}
    prefix = question["write"]
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=getattr(numpy, question["type"]))
    for tokens in question["documents"]:
        builder.add_item(Tensor(tokens))
        builder.end_document()
    builder.finalize(prefix + ".idx")
    return {}


driver.serve(answer)
