"""What is wrong, unwise or worth knowing about a Spark setting: data first, then a line or an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.core.errors import ConfigurationError, SeveralErrors
from common.core.masking import mask_value

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One thing about one setting.

    Attributes:
        key: The setting's key.
        value: Its value, masked when the key is secret.
        origin: Where it is written ("conf/yarn.conf:12", "--conf").
        severity: "error" stops a run, "warning" is said, "info" is worth knowing.
        sentence: What is wrong and why, without a full stop; of an error: what would have been right.
        guidelines: Ids of the rules it follows from.
        hint: The nearest right thing to do.
    """

    key: str
    value: str
    origin: str
    severity: Severity
    sentence: str
    guidelines: tuple[str, ...] = ()
    hint: str | None = None

    def line(self) -> str:
        """The finding on one line.

        >>> Finding("spark.a", "1", "x.conf:3", "warning", "too small", ("R3",), "write 2").line()
        'warning: x.conf:3: spark.a = 1: too small; write 2 [R3]'
        """
        expected = "expected " if self.severity == "error" else ""
        hint = f"; {self.hint}" if self.hint else ""
        rules = f" [{' '.join(self.guidelines)}]" if self.guidelines else ""
        place = f"{self.severity}: {self.origin}: {self.key} = {self.value}"
        return f"{place}: {expected}{self.sentence}{hint}{rules}"

    def error(self) -> ConfigurationError:
        """The finding as an error to raise."""
        got = f"{self.value!r} from {self.origin}"
        return ConfigurationError("key", self.key, expected=self.sentence, got=got, hint=self.hint)


def finding(
    key: str,
    value: str,
    origin: str,
    *,
    severity: Severity,
    sentence: str,
    guidelines: tuple[str, ...] = (),
    hint: str | None = None,
) -> Finding:
    """A finding whose value may be shown: masked when its key is secret."""
    return Finding(key, mask_value(key, value), origin, severity, sentence, guidelines, hint)


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise what stops a run, all of it at once.

    Raises:
        ConfigurationError: one finding is an error.
        SeveralErrors: several are.
    """
    errors = [each.error() for each in findings if each.severity == "error"]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SeveralErrors(errors)
