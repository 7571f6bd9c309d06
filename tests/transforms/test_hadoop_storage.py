from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from common.core.errors import OnlyMarkersError, PathAbsentError
from common.engine.hadoop_storage import REQUIRES, HadoopStorage
from common.engine.listing import list_input
from common.engine.storage import LocalStorage, storage_for
from common.engine.tables import read_input
from common.settings.inputs import InputRequest


@pytest.fixture
def storage(spark: SparkSession) -> HadoopStorage:
    return HadoopStorage(spark)


def test_it_says_what_it_needs() -> None:
    assert frozenset({"classic"}) == REQUIRES


def test_other_schemes_get_it_once_there_is_a_session(spark: SparkSession) -> None:
    assert isinstance(storage_for("hdfs://host/x", spark), HadoopStorage)
    assert isinstance(storage_for("data/x", spark), LocalStorage)


def test_entries_are_those_of_the_local_storage(storage: HadoopStorage, tmp_path: Path) -> None:
    (tmp_path / "a b,{c}#%20.csv").write_text("12345")
    (tmp_path / "k=1").mkdir()
    there = [
        (e.name, e.size_bytes, int(e.modified_seconds), e.is_folder)
        for e in storage.children(f"file:{tmp_path}")
    ]
    here = [
        (e.name, e.size_bytes, int(e.modified_seconds), e.is_folder)
        for e in LocalStorage().children(str(tmp_path))
    ]
    assert there == here
    assert storage.entry(f"file:{tmp_path}/a b,{{c}}#%20.csv").size_bytes == 5
    assert storage.head(f"file:{tmp_path}/a b,{{c}}#%20.csv", size_bytes=3) == b"123"
    assert storage.head(f"file:{tmp_path}/a b,{{c}}#%20.csv", size_bytes=99) == b"12345"


def test_failures_are_oserrors(storage: HadoopStorage, tmp_path: Path) -> None:
    absent = f"file:{tmp_path}/absent"
    assert not storage.exists(absent)
    calls: list[Callable[[], object]] = [
        lambda: storage.entry(absent),
        lambda: storage.children(absent),
        lambda: storage.head(absent, size_bytes=1),
        lambda: storage.rename(absent, target=f"{absent}2"),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError, match="absent"):
            call()
    with pytest.raises(OSError, match="nosuchscheme"):
        storage.entry("nosuchscheme://x/y")


def test_folders_renames_and_deletes(storage: HadoopStorage, tmp_path: Path) -> None:
    root = f"file:{tmp_path}"
    storage.make_folders(f"{root}/a/b")
    storage.make_folders(f"{root}/a/b")
    storage.make_folders(f"{root}/c")
    with pytest.raises(FileExistsError):
        storage.rename(f"{root}/a", target=f"{root}/c")
    storage.rename(f"{root}/a", target=f"{root}/d")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d"]
    storage.delete_tree(f"{root}/d")
    storage.delete_tree(f"{root}/d")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_an_input_is_listed_and_read_through_it(
    spark: SparkSession, storage: HadoopStorage, tmp_path: Path
) -> None:
    for day, content in ((1, "n,s\n1,x\n"), (2, "s,n\ny,2\n")):
        (tmp_path / f"in/day={day}").mkdir(parents=True)
        (tmp_path / f"in/day={day}/f,{{1}}.csv").write_text(content)
    (tmp_path / "in/_SUCCESS").touch()
    (tmp_path / "done").mkdir()
    (tmp_path / "done/_SUCCESS").touch()
    for path in (f"file:{tmp_path}/in", f"file:{tmp_path}/in/day=*"):
        listing = list_input(InputRequest("input", (path,)), storage)
        assert listing.partition_columns == (("day", "BIGINT"),)
        assert not listing.is_local
        rows = sorted(tuple(row) for row in read_input(spark, listing).collect())
        assert rows == [("1", "x", 1), ("2", "y", 2)]
    with pytest.raises(OnlyMarkersError):
        list_input(InputRequest("input", (f"file:{tmp_path}/done",)), storage)
    with pytest.raises(PathAbsentError, match="did you mean"):
        list_input(InputRequest("input", (f"file:{tmp_path}/dome",)), storage)
