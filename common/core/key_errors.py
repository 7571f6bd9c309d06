"""What can be wrong with the keys of a lookup and with the rows that it finds nothing for."""

from __future__ import annotations

from common.core.errors import DataError


class KeyDuplicateError(DataError):
    """Raised when a key that must be there once has several rows."""

    condition = "KEY_DUPLICATE"


class KeyMissingError(DataError, LookupError):
    """Raised when keys have no match, and must have one."""

    condition = "KEY_MISSING"


class ValidityError(DataError):
    """Raised when the intervals of a dimension's versions are empty, overlap or leave gaps."""

    condition = "VALIDITY_INVALID"


class RejectsError(DataError):
    """Raised when more rows cannot be used than the run may reject."""

    condition = "REJECTS_TOO_MANY"
