"""The inputs as a job gets them: frames by name, and files of plain text also as parts that workers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from common.engine.counters import Counters
from common.engine.listing import Listing
from common.engine.sifted_rows import Sifted, sift
from common.engine.tables import read_input
from common.engine.text_counts import TextRanges, text_ranges
from common.engine.text_rows import read_lines

_SHOWN = 5


class ReadInputs(Mapping[str, DataFrame]):
    """The inputs of a run: what stands at their paths as DataFrames, in the columns that were promised.

    Files of plain text become a frame only when a job asks for it, since a job may read them otherwise.

    Attributes:
        shared: The broadcast variables that `Job.share` has asked for, by name.
    """

    def __init__(self, spark: SparkSession, listings: Mapping[str, Listing]) -> None:
        self._spark = spark
        self._listings = listings
        early = {name: listing for name, listing in listings.items() if listing.request.encoding is None}
        self._sifted: dict[str, Sifted] = {}
        self._frames = {name: self._read(name) for name in early}
        self.shared: dict[str, Any] = {}

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._frames:
            self._frames[name] = self._read(name)
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listings)

    def __len__(self) -> int:
        return len(self._listings)

    def _read(self, name: str) -> DataFrame:
        listing = self._listings[name]
        if listing.request.bad_rows == "fail":
            return read_input(self._spark, listing)
        self._sifted[name] = sift(self._spark, listing)
        return self._sifted[name].readable

    def bad_rows(self, name: str) -> tuple[DataFrame, list[Counters]]:
        """The rows that an input's frame leaves out; see `Sifted.bad`."""
        return self._sifted[name].bad()

    def ranges(self, name: str, *, split_bytes: int, group: str | None = None) -> TextRanges:
        """The parts of a local input of plain text, for `count_ranges`.

        Args:
            name: The input's.
            split_bytes: About what a task reads.
            group: A partition column, whose value goes with each file.
        """
        return text_ranges(self._spark, self._listings[name], split_bytes=split_bytes, group=group)

    def partition_columns(self, name: str) -> tuple[str, ...]:
        """The columns that folder names hold."""
        return tuple(column for column, _ in self._listings[name].partition_columns)

    def lines(self, name: str, *, file_column: str) -> DataFrame:
        """The lines of an input of plain text, each with the path of its file; partition columns follow."""
        return read_lines(self._spark, self._listings[name], file_column=file_column)


def not_read(listing: Listing) -> Iterator[str]:
    """A sentence for what stands at the paths of an input of plain text and is not read.

    Elsewhere hidden files are the markers of whoever wrote the data, and no news.
    """
    if listing.request.encoding is None:
        return
    if listing.skipped:
        yield f"not read, since hidden: {_shown(listing.skipped)}"
    if listing.passed_over:
        yield f"not read, since in sub-folders (--recursive reads them): {_shown(listing.passed_over)}"


def _shown(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
