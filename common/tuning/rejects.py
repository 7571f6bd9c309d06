"""How many rows a run may reject."""

from __future__ import annotations

from fractions import Fraction

from common.core.key_errors import RejectsError


def check_rejects(rejected: int, rows: int, *, limit: str, hint: str) -> None:
    """Refuse more rejects than are allowed.

    Args:
        rejected: Rows.
        rows: All rows, the rejected ones too.
        limit: A number of rows, or a share such as "0.5%".
        hint: How to find out what is wrong with them.

    Raises:
        RejectsError: there are more.
    """
    allowed = rows * Fraction(limit[:-1]) / 100 if limit.endswith("%") else Fraction(limit)
    if rejected > allowed:
        share = f" ({100 * rejected / rows:.4g}%)" if rows else ""
        raise RejectsError(
            "rejects",
            "--max-rejects",
            expected=f"at most {limit} of {rows:,} row{'' if rows == 1 else 's'}",
            got=f"{rejected:,}{share}",
            hint=f"nothing was published; raise the limit, or {hint}",
        )
