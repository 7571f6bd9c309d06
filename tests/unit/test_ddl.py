from __future__ import annotations

import pytest

from common.core.errors import UsageError
from common.engine.ddl import parse_columns, render_columns


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("a INT", [("a", "INT")]),
        (" a INT ,b:string ", [("a", "INT"), ("b", "string")]),
        ("a DECIMAL(10, 2), b INT", [("a", "DECIMAL(10, 2)"), ("b", "INT")]),
        ("s STRUCT<x: INT, y: ARRAY<INT>>, b INT", [("s", "STRUCT<x: INT, y: ARRAY<INT>>"), ("b", "INT")]),
        ("a INT NOT NULL COMMENT 'one, two', b DATE", [("a", "INT"), ("b", "DATE")]),
        ("`x``y, z` TIMESTAMP_NTZ", [("x`y, z", "TIMESTAMP_NTZ")]),
        ("ü漢 string", [("ü漢", "string")]),
    ],
)
def test_names_and_types(schema: str, expected: list[tuple[str, str]]) -> None:
    assert parse_columns(schema) == tuple(expected)
    assert parse_columns(render_columns(expected)) == tuple(expected)


@pytest.mark.parametrize("schema", ["", "a", "a INT,", "a INT, a STRING", "a INT, A STRING", "a 12"])
def test_refused(schema: str) -> None:
    with pytest.raises(UsageError, match="--left-schema"):
        parse_columns(schema, flag="--left-schema")
