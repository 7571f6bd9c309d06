"""What a worker does, without Spark: any division of files among tasks gives the same counts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.core.errors import ValueMalformedError
from common.engine.text_ranges import BLOCK_BYTES, TextFile, TextRange, tasks_of
from common.engine.text_work import Tasks, Work, counting
from common.transforms import words_count, words_tally
from common.transforms.words_rules import OnDecodeError, WordRules
from common.transforms.words_tokens import lines_of, tokenizer_of

PARTS = [
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\u3000",
    "\u00a0",
    "a",
    "bc",
    "é",
    "漢字",
    "\U0001f600",
    "'",
    "-",
    ",",
]
TEXT = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)


def count(
    tasks: Tasks,
    rules: WordRules,
    *,
    keys: Sequence[str] = (),
    encoding: str = "utf-8",
    on_decode_error: OnDecodeError = "fail",
    block_bytes: int = BLOCK_BYTES,
) -> Counter[Any]:
    names = (*keys, "word", "count")
    by_file, by_group = "file" in keys, "group" in keys
    work = Work(tasks, rules, encoding, on_decode_error, names, by_file, by_group, block_bytes)
    numbers = pa.record_batch([pa.array(range(len(tasks)), pa.int64())], ["id"])
    found: Counter[Any] = Counter()
    for batch in counting(work)([numbers]):
        assert batch.schema.names == list(names)
        for *key, number in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found[key[0] if len(key) == 1 else tuple(key)] += number
    return found


def written(folder: Path | str, contents: Mapping[str, bytes]) -> list[TextFile]:
    files = []
    for name, content in contents.items():
        path = Path(folder) / name
        path.write_bytes(content)
        files.append(TextFile(str(path), len(content)))
    return files


@settings(max_examples=40, deadline=None)
@given(
    st.lists(TEXT, max_size=3),
    st.sampled_from([1, 2, 7, 1_000]),
    st.sampled_from([1, 5, BLOCK_BYTES]),
    st.booleans(),
)
def test_any_split_and_any_block_give_the_words_of_the_whole(
    texts: list[str], split_bytes: int, block_bytes: int, marked: bool
) -> None:
    mark = "\ufeff" if marked else ""
    with tempfile.TemporaryDirectory() as folder:
        files = written(folder, {f"{at}": (mark + text).encode() for at, text in enumerate(texts)})
        tasks = tasks_of(files, split_bytes=split_bytes)
        found = count(tasks, WordRules("whitespace", case="keep"), block_bytes=block_bytes)
        assert found == Counter(word for text in texts for word in text.split())
        characters = count(tasks, WordRules("characters", case="keep"), block_bytes=block_bytes)
        assert characters == Counter(one for text in texts for one in text if not one.isspace())
        whole = [(TextRange(file),) for file in files]
        for rules in (WordRules(), WordRules(normalize="nfkc"), WordRules("regex:[^ ]+")):
            expected = Counter(
                word for text in texts for line in lines_of(text) for word in tokenizer_of(rules)(line)
            )
            assert count(tasks, rules, block_bytes=block_bytes) == count(tuple(whole), rules) == expected


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", " ", "\n", "\r\n", "\r"]), max_size=20).map("".join))
def test_n_grams_stay_within_their_line_in_any_split(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    expected: Counter[str] = Counter()
    for words in map(str.split, lines):
        expected.update(f"{one} {two}" for one, two in pairwise(words))
    with tempfile.TemporaryDirectory() as folder:
        files = written(folder, {"a": text.encode()})
        for split_bytes in (1, 3):
            tasks = tasks_of(files, split_bytes=split_bytes)
            assert count(tasks, WordRules("whitespace", ngrams=2)) == expected


def test_what_a_task_holds_is_bounded(tmp_path: Path) -> None:
    text = " ".join(f"w{number}" for number in range(1_000)) * 3
    tasks = tasks_of(written(tmp_path, {"a": text.encode()}), split_bytes=1_000_000)
    numbers = pa.record_batch([pa.array([0], pa.int64())], ["id"])
    rows = {}
    for held_bytes in (0, 1 << 20):
        work = Work(
            tasks, WordRules(), "utf-8", "fail", ("word", "count"), False, False,
            block_bytes=500, held_bytes=held_bytes,
        )  # fmt: skip
        rows[held_bytes] = [batch.num_rows for batch in counting(work)([numbers])]
    # Each word takes 3 bytes or more: no batch holds more words than a block and a piece may.
    assert max(rows[0]) < 500 / 3 + 2
    assert rows[1 << 20] == [len(set(text.split()))]
    assert count(tasks, WordRules(), block_bytes=500) == Counter(text.split())


def test_the_peak_of_a_worker_does_not_grow_with_the_distinct_words(tmp_path: Path) -> None:
    numbers = pa.record_batch([pa.array([0], pa.int64())], ["id"])

    def peak_bytes(words: int, *, held_bytes: int, buckets: int | None) -> int:
        text = " ".join(f"w{number:08}" for number in range(words))
        tasks = tasks_of(written(tmp_path, {"a": text.encode()}), split_bytes=1 << 30)
        work = Work(
            tasks, WordRules(), "utf-8", "fail", ("word", "count"), False, False,
            block_bytes=1 << 17, held_bytes=held_bytes, buckets=buckets,
        )  # fmt: skip
        usual = pa.default_memory_pool()
        pool = pa.proxy_memory_pool(usual)
        pa.set_memory_pool(pool)
        try:
            rows = sum(batch.num_rows for batch in counting(work)([numbers]))
        finally:
            pa.set_memory_pool(usual)
        assert rows == words if buckets is None else rows >= buckets
        return pool.max_memory() or 0

    for buckets in (None, 8):
        few = peak_bytes(40_000, held_bytes=1 << 17, buckets=buckets)
        many = peak_bytes(400_000, held_bytes=1 << 17, buckets=buckets)
        assert many < 1.5 * few, buckets
        assert peak_bytes(400_000, held_bytes=1 << 30, buckets=buckets) > 3 * many  # what the bound saves


def test_by_file_and_group(tmp_path: Path) -> None:
    files = written(tmp_path, {"a": b"x y", "b": b"x", "c": b"x x", "d": b""})
    groups = {"a": "1", "b": "2", "c": "1", "d": None}
    files = [TextFile(file.path, file.size_bytes, "", groups[Path(file.path).name]) for file in files]
    tasks = tasks_of(files, split_bytes=1_000_000)
    assert len(tasks) == 1
    assert count(tasks, WordRules()) == {"x": 4, "y": 1}
    assert count(tasks, WordRules(), keys=["group"]) == {("1", "x"): 3, ("1", "y"): 1, ("2", "x"): 1}
    paths = {name: str(tmp_path / name) for name in "abc"}
    assert count(tasks, WordRules(), keys=["file", "group"]) == {
        (paths["a"], "1", "x"): 1,
        (paths["a"], "1", "y"): 1,
        (paths["b"], "2", "x"): 1,
        (paths["c"], "1", "x"): 2,
    }


@pytest.mark.parametrize("split_bytes", [1, 5, 1_000])
def test_bad_bytes_are_found_in_their_file(tmp_path: Path, split_bytes: int) -> None:
    tasks = tasks_of(written(tmp_path, {"a": b"one\ntwo", "b": b"three fou\xffr\n"}), split_bytes=split_bytes)
    for rules in (WordRules(), WordRules("whitespace", ngrams=2)):
        with pytest.raises(ValueMalformedError) as caught:
            count(tasks, rules)
        assert caught.value.name == str(tmp_path / "b")
        assert caught.value.got == "other bytes at byte 9"
        assert count(tasks, rules, on_decode_error="replace")[None] == 1


def test_text_without_an_end_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_tally, "_PIECE_BYTES", 2)
    for module in (words_tally, words_count):
        monkeypatch.setattr(module, "LONGEST_BYTES", 6)
    files = written(tmp_path, {"a": b"one two ", "b": b"ab\nendless"})
    tasks = tasks_of(files, split_bytes=1_000)
    for rules, what in [
        (WordRules("whitespace"), "words"), (WordRules(ngrams=2), "lines"), (WordRules("regex:e"), "lines"),
    ]:  # fmt: skip
        with pytest.raises(ValueMalformedError) as caught:
            count(tasks, rules, block_bytes=3)
        assert caught.value.name == str(tmp_path / ("b" if what == "words" else "a"))
        place = "3" if what == "words" else "0"
        assert caught.value.got == f"nothing that parts {what} from about byte {place} on"
        assert f"something between its {what} every 2 GiB at least" in caught.value.expected
    assert count(tasks, WordRules("characters"), block_bytes=3)["e"] == 3


def test_replacements_of_other_encodings_are_counted(tmp_path: Path) -> None:
    tasks = tasks_of(written(tmp_path, {"a": b"\x81 a\n\x81\x8d"}), split_bytes=3)
    found = count(tasks, WordRules("whitespace"), encoding="cp1252", on_decode_error="replace")
    assert found == {"\ufffd": 1, "a": 1, "\ufffd\ufffd": 1, None: 3}


def test_workers_import_no_session_and_no_settings() -> None:
    code = (
        "import sys, common.engine.text_work;"
        "heavy = ('pydantic', 'cyclopts', 'pyspark', 'pandas', 'common.settings', 'common.runs');"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
