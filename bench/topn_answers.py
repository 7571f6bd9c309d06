"""The answers of bench-topn, compared: another answer is no faster one."""

from __future__ import annotations

from bench.topn_sides import Answer, Measurement


class Answers:
    """The first answer to each shape, the plain window's where Spark takes part, and who gave the same."""

    def __init__(self) -> None:
        self.compared: dict[str, list[str]] = {}
        self._expected: dict[str, dict[str, tuple[str, str]]] = {}

    def add(self, item: Measurement) -> None:
        """Compare what is known of an answer with what is expected.

        Raises:
            SystemExit: with code 1; it differs.
        """
        if item.answer is None:
            return
        way = f"{item.side} {item.strategy}"
        expected = self._expected.setdefault(item.shape, {})
        common = expected.keys() & item.answer.keys()
        for name in sorted(common):
            value, whose = expected[name]
            if item.answer[name] != value:
                raise SystemExit(
                    f"{item.shape}: the answer of {way} differs from that of {whose}: "
                    f"{name} {item.answer[name]} instead of {value}"
                )
        if common:
            self.compared.setdefault(item.shape, []).append(way)
        self._expect(item.answer, way, expected)

    @staticmethod
    def _expect(answer: Answer, way: str, expected: dict[str, tuple[str, str]]) -> None:
        for name, value in answer.items():
            expected.setdefault(name, (value, way))
