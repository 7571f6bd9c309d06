"""One Spark setting as the registry describes it, and its values read as Spark itself reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from common.core.errors import ParameterError, did_you_mean
from common.core.units import parse_bytes, parse_seconds, spell_bytes

Status = Literal["alive", "deprecated", "dead", "fatal"]
Kind = Literal["deploy", "static", "runtime"]
ValueType = Literal["bytes", "heap", "seconds", "ratio", "number", "count", "bool", "text", "choice"]
Value = bool | int | float | str
Limit = int | float | str | None

_HEAP = re.compile(r"[0-9]+[kmgt]", re.IGNORECASE)
_COUNT = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?[df]?", re.IGNORECASE)
_TRUTHS: Final = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}


@dataclass(frozen=True)
class Advice:
    """What the guide has to say about a value that Spark takes.

    Attributes:
        say: The sentence for a value outside.
        minimum: The least value that needs none.
        maximum: The largest one.
        values: The values that need none; empty for any.
    """

    say: str
    minimum: Limit = None
    maximum: Limit = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """Settings that share a prefix and are not checked one by one."""

    prefix: str
    kind: Kind
    why: str
    status: Status = "alive"
    replaced_by: str = ""


@dataclass(frozen=True)
class Key:
    """One setting; keys.toml explains the fields."""

    name: str
    status: Status
    kind: Kind
    why: str
    type: ValueType = "text"
    unit: str | None = None
    choices: tuple[str, ...] = ()
    classes: bool = False
    exact: bool = False
    pattern: str | None = None
    form: str = ""
    minimum: Limit = None
    maximum: Limit = None
    off: bool = False
    default: str | None = None
    since: str | None = None
    of: str | None = None
    replaced_by: str = ""
    advice: Advice | None = None
    guidelines: tuple[str, ...] = ()

    @classmethod
    def from_table(cls, name: str, table: Mapping[str, Any]) -> Key:
        """The key of a line of keys.toml."""
        fields = dict(table)
        fields["minimum"], fields["maximum"] = fields.pop("min", None), fields.pop("max", None)
        for field in ("choices", "guidelines"):
            fields[field] = tuple(fields.get(field, ()))
        advise = fields.pop("advise", None)
        if advise:
            values = tuple(advise.get("values", ()))
            fields["advice"] = Advice(advise["say"], advise.get("min"), advise.get("max"), values)
        return cls(name, **fields)

    def read(self, text: str) -> Value:
        """The value in bytes, in seconds, or as it is.

        Raises:
            ParameterError: Spark cannot use such a value.

        >>> Key("spark.driver.cores", "alive", "deploy", "", type="count").read("4")
        4
        """
        value = self._parsed(text.strip())
        below = self.minimum is not None and not self._at_least(value, self.minimum)
        above = self.maximum is not None and not self._at_least(self._parsed(str(self.maximum)), value)
        if (below and not (self.off and self._is_negative(value))) or above:
            raise self._refused(text, self._range())
        return value

    def is_unwise(self, text: str) -> bool:
        """Whether the guide has something to say about a value that Spark takes."""
        advice, value = self.advice, self._parsed(text.strip())
        if advice is None or (self.off and self._is_negative(value)):
            return False
        if advice.values:
            return str(value).lower() not in [each.lower() for each in advice.values]
        return (advice.minimum is not None and not self._at_least(value, advice.minimum)) or (
            advice.maximum is not None and not self._at_least(self._parsed(str(advice.maximum)), value)
        )

    def _at_least(self, value: Value, limit: Value) -> bool:
        bound = self._parsed(limit) if isinstance(limit, str) else limit
        return not isinstance(value, str) and not isinstance(bound, str) and value >= bound

    @staticmethod
    def _is_negative(value: Value) -> bool:
        return not isinstance(value, str) and value < 0

    def _range(self) -> str:
        if self.minimum is None:
            return f"at most {self.maximum}"
        least = f"{self.minimum} or more" if self.maximum is None else f"{self.minimum} to {self.maximum}"
        return f"{least}, or -1 for off" if self.off else least

    def _refused(self, text: str, expected: str, hint: str | None = None) -> ParameterError:
        return ParameterError("key", self.name, expected=expected, got=repr(text), hint=hint)

    def _parsed(self, text: str) -> Value:
        return _READERS[self.type](self, text)

    def _bytes(self, text: str) -> int:
        return parse_bytes(text, default_unit=self.unit, allow_negative=True, name=self.name)

    def _seconds(self, text: str) -> float:
        return parse_seconds(text, default_unit=self.unit, allow_negative=True, name=self.name)

    def _count(self, text: str) -> int:
        if not _COUNT.fullmatch(text):
            raise self._refused(text, "a whole number")
        return int(text)

    def _bool(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            near = _TRUTHS.get(text.lower())
            raise self._refused(text, "true or false", f"write {near}" if near else None)
        return text.lower() == "true"

    def _text(self, text: str) -> str:
        if self.pattern and not re.fullmatch(self.pattern, text, re.DOTALL):
            raise self._refused(text, self.form)
        return text

    def _heap(self, text: str) -> int:
        """Spark's launcher hands the text to Java as it is: no bare number, no `gb`."""
        size_bytes = parse_bytes(text, default_unit=self.unit, name=self.name)
        if not _HEAP.fullmatch(text):
            expected = "a number and one of k, m, g, t, as Java reads it"
            raise self._refused(text, expected, f"write {spell_bytes(size_bytes)}")
        return size_bytes

    def _number(self, text: str) -> float:
        if not _NUMBER.fullmatch(text):
            percent = re.fullmatch(r"([0-9]{1,3})%", text)
            hint = f"write {int(percent[1]) / 100:g}" if percent else None
            raise self._refused(text, "a number, as 0.25", hint)
        number = float(text.rstrip("dDfF"))
        if self.type == "ratio" and not 0 <= number <= 1:
            raise self._refused(text, "0 to 1")
        return number

    def _choice(self, text: str) -> str:
        for choice in self.choices:
            if text == choice or (not self.exact and text.lower() == choice.lower()):
                return choice
        if self.classes and "." in text:
            return text
        expected = f"one of {', '.join(self.choices)}" + (" or the name of a class" if self.classes else "")
        raise self._refused(text, expected, did_you_mean(text, self.choices))


_READERS: Final[Mapping[ValueType, Callable[[Key, str], Value]]] = {
    "bytes": Key._bytes,
    "heap": Key._heap,
    "seconds": Key._seconds,
    "ratio": Key._number,
    "number": Key._number,
    "count": Key._count,
    "bool": Key._bool,
    "text": Key._text,
    "choice": Key._choice,
}
