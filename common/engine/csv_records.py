"""The first record of a CSV text, split as Spark's parser splits it."""

from __future__ import annotations

from common.engine.reader_options import CsvDialect


def first_record(text: str, *, dialect: CsvDialect, whole: bool) -> list[str] | None:
    """The fields of the first record that is neither empty nor a comment.

    Args:
        text: The beginning of a file.
        dialect: Separator, quote, escape, comment, line end.
        whole: The text is the whole file, so its end ends a record.

    Returns:
        [] when the whole file holds no record; None when the text ends within it.

    >>> first_record('# made\\nNAME,"home ""a"", b"\\n1,2', dialect=CsvDialect(comment="#"), whole=False)
    ['NAME', 'home "a", b']
    """
    position = 0
    while position < len(text):
        if dialect.comment and text.startswith(dialect.comment, position):
            end, after = _line_end(text, position, dialect)
            if end is None and not whole:
                return None
            position = after
            continue
        fields, position = _record(text, position, dialect)
        if fields is None or (position >= len(text) and not whole):
            return None
        if fields != [""]:
            return fields
    return [] if whole else None


def _record(text: str, position: int, dialect: CsvDialect) -> tuple[list[str] | None, int]:
    fields: list[str] = []
    while True:
        field, position = _field(text, position, dialect)
        if field is None:
            return None, position
        fields.append(field)
        if text.startswith(dialect.sep, position):
            position += len(dialect.sep)
            continue
        length = _break_length(text, position, dialect)
        return fields, position + length


def _field(text: str, position: int, dialect: CsvDialect) -> tuple[str | None, int]:
    start = position
    if dialect.strip_left:
        while text[start : start + 1] in (" ", "\t") and not text.startswith(dialect.sep, start):
            start += 1
    if dialect.quote and text.startswith(dialect.quote, start):
        value, start = _quoted(text, start + len(dialect.quote), dialect)
        if value is None:
            return None, start
        tail, start = _bare(text, start, dialect)
        return value + tail.strip(" \t"), start
    value, end = _bare(text, start, dialect)
    return (value.rstrip(" \t") if dialect.strip_right else value), end


def _quoted(text: str, position: int, dialect: CsvDialect) -> tuple[str | None, int]:
    value: list[str] = []
    while position < len(text):
        character = text[position]
        follower = text[position + 1 : position + 2]
        if character == dialect.escape and follower and follower in (dialect.quote, dialect.escape):
            value.append(follower)
            position += 2
        elif character == dialect.quote:
            return "".join(value), position + 1
        else:
            value.append(character)
            position += 1
    return None, position


def _bare(text: str, position: int, dialect: CsvDialect) -> tuple[str, int]:
    start = position
    while position < len(text):
        if text.startswith(dialect.sep, position) or _break_length(text, position, dialect):
            break
        position += 1
    return text[start:position], position


def _break_length(text: str, position: int, dialect: CsvDialect) -> int:
    if dialect.line_sep:
        return len(dialect.line_sep) if text.startswith(dialect.line_sep, position) else 0
    if text.startswith("\r\n", position):
        return 2
    return 1 if text[position : position + 1] in ("\n", "\r") else 0


def _line_end(text: str, position: int, dialect: CsvDialect) -> tuple[int | None, int]:
    while position < len(text):
        length = _break_length(text, position, dialect)
        if length:
            return position, position + length
        position += 1
    return None, position
