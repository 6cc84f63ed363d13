"""Writes *.parquet: tables with the same texts, in the forms that pyarrow writes. tables.json has the texts.

    python tables.py
"""

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
WORDS = ["naïve", "Straße", "你好", "мир", "👩‍👩‍👧", "a b", "\n", "don't", ""]
TEXTS = [None if i % 11 == 7 else " ".join(WORDS[(i * k) % len(WORDS)] for k in range(i % 7)) for i in range(70)]
FORMS = {
    "plain": dict(compression="none", use_dictionary=False),
    "snappy": dict(compression="snappy"),
    "zstd": dict(compression="zstd", data_page_version="2.0", row_group_size=16),
    "gzip": dict(compression="gzip", use_dictionary=False, data_page_version="2.0"),
    "lz4": dict(compression="lz4", row_group_size=25),
    "delta": dict(compression="zstd", use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}),
    "small": dict(compression="snappy", data_page_size=64, dictionary_pagesize_limit=64, row_group_size=40),
}


def main():
    for name, form in FORMS.items():
        kind = pa.large_string() if name == "zstd" else pa.string()
        table = pa.table({"id": pa.array(range(len(TEXTS))), "text": pa.array(TEXTS, kind),
                          "tags": pa.array([["x"]] * len(TEXTS))})
        if "column_encoding" in form:
            table = table.select(["text"])
        pq.write_table(table, HERE / f"{name}.parquet", **form)
    (HERE / "tables.json").write_text(json.dumps(TEXTS) + "\n")


if __name__ == "__main__":
    main()
