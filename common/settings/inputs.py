"""What the user asked for as an input: places, format, schema, options. Nothing is looked at yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

InputFormat = Literal["auto", "parquet", "orc", "csv", "json", "text"]
BadRows = Literal["fail", "reject"]
SubFolders = Literal["refuse", "skip", "read"]


@dataclass(frozen=True)
class InputRequest:
    """One named input of a job, as typed.

    Attributes:
        name: The flag's name: "input", "left", …
        paths: Local paths, globs, URLs (hdfs, s3a, …) or one `table:db.name`. A comma, a brace and a
            space are characters; `*`, `?` and `[` are a glob unless a file of exactly that name exists.
        format: "auto" tells it from the file names' endings.
        schema: DDL ("zip STRING, n INT") or None. Types it names win over those the files carry.
        options: Reader options by Spark's names (header, sep, mode, …).
        allow_empty: A folder without data files is zero rows of the declared schema, not an error.
        sub_folders: What happens to plain sub-folders, which are no partitions NAME=VALUE.
        encoding: Of files that are plain text whatever their endings say; binary ones are refused then.
            None reads by format.
        bad_rows: Rows that cannot be read as declared fail the run, or are rejected.
    """

    name: str
    paths: tuple[str, ...]
    format: InputFormat = "auto"
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    allow_empty: bool = False
    sub_folders: SubFolders = "refuse"
    encoding: str | None = None
    bad_rows: BadRows = "fail"
