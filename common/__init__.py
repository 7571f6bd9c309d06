"""The shared package of Saltpan: floors from `core` (0) to `cli` (6); see CONTRIBUTING.md."""

from __future__ import annotations

import sys

__version__ = "0.1.0"

if sys.version_info < (3, 11):  # noqa: UP036  spark-submit takes the first python3 it finds
    raise SystemExit(
        f"[PYTHON_TOO_OLD] Python `{sys.executable}`: expected 3.11 or newer, got "
        f"{sys.version_info[0]}.{sys.version_info[1]}. Hint: set PYSPARK_PYTHON to a newer python3."
    )
