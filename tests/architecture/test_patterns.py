"""Regular expressions mean the same on every Python that the suite runs on."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_parser: Any = re._parser  # type: ignore[attr-defined]  # what re itself compiles from


def _module_patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    """The patterns that stand in modules of the suite, with their places."""
    for path in sorted(ROOT.glob("common/**/*.py")) + sorted(ROOT.glob("jobs/*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = importlib.import_module(name.removesuffix(".__init__"))
        for label, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield f"{name}.{label}", value


def _failing_rounds(items: Iterable[Any]) -> Iterator[Any]:
    """Possessive groups of which a round can fail after it has read something (CPython's gh-106052)."""
    for item in items:
        if isinstance(item, tuple) and item and str(item[0]) == "POSSESSIVE_REPEAT":
            inside = list(item[1][2])
            if len(inside) > 1 and str(inside[0][0]) != "ASSERT":
                yield item
            if len(inside) == 1 and str(inside[0][0]) in {"SUBPATTERN", "BRANCH"}:
                yield item
        if isinstance(item, (tuple, list, _parser.SubPattern)):
            yield from _failing_rounds(item)


def test_no_possessive_group_can_fail_half_way() -> None:
    patterns = dict(_module_patterns())
    assert {"common.core.masking._SCAN", "common.transforms.words_tokens._WORD"} <= set(patterns)
    wrong = [
        place
        for place, pattern in patterns.items()
        if any(_failing_rounds(_parser.parse(pattern.pattern, pattern.flags)))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("pattern", "is_wrong"),
    [
        ("a++", False), ("[ab]*+c", False), ("(?:(?=ab)ab)*+", False), ("(?:ab)*", False),
        ("(?:ab)*+", True), ("x(?:a|bc)?+", True), ("(?:y(?:(a)b)++)", True),
    ],
)  # fmt: skip
def test_the_check_finds_what_it_is_for(pattern: str, is_wrong: bool) -> None:
    assert any(_failing_rounds(_parser.parse(pattern))) == is_wrong
