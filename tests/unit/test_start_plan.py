"""Which JVM a run of our own gets."""

from __future__ import annotations

import pytest

from common.tuning.facts import InputFacts
from common.tuning.start import FAST_UP_TO_BYTES, plan_start


def facts(size_bytes: int | None) -> InputFacts:
    return InputFacts("input", "parquet", ("in",), size_bytes=size_bytes)


@pytest.mark.parametrize(
    ("sizes", "choice"),
    [
        ([10], "fast"),
        ([FAST_UP_TO_BYTES], "fast"),
        ([FAST_UP_TO_BYTES, 1], "full"),
        ([10, None], "full"),
        ([], "fast"),
    ],
)
def test_auto(sizes: list[int | None], choice: str) -> None:
    assert plan_start("auto", inputs=map(facts, sizes)).choice == choice


def test_the_reason_has_the_numbers() -> None:
    assert plan_start("auto", inputs=[facts(2 * FAST_UP_TO_BYTES)]).reason.startswith(
        "128 MiB of input is more than 64 MiB"
    )


@pytest.mark.parametrize("choice", ["fast", "full"])
def test_a_forced_choice(choice: str) -> None:
    decision = plan_start(choice, inputs=[facts(None)])  # type: ignore[arg-type]
    assert (decision.choice, decision.forced) == (choice, True)
