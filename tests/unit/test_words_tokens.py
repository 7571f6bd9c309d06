# ruff: noqa: RUF001  text in many scripts
"""What a word is: every tokenizer and every rule by examples, and the unicode rule against a plain loop."""

from __future__ import annotations

import pickle
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.core.errors import InstallationError, ParameterError, UnknownNameError
from common.transforms.words_han import never_found
from common.transforms.words_rules import WordRules, check, stop_words
from common.transforms.words_sql import why_not_sql
from common.transforms.words_tokens import lines_of, tokenizer_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't don’t rock'n'roll 'quoted'", ["don't", "don't", "rock'n'roll", "quoted"]),
        ("a\u00a0b a\u3000b x\u200by", ["a", "b", "a", "b", "x\u200by"]),
        ("שלום voilà 你好 42", ["שלום", "voilà", "你好", "42"]),
        ("İ Straße STRASSE ΟΔΟΣ", ["i\u0307", "straße", "strasse", "οδος"]),
        ("well-known twenty‐one non‑break", ["well-known", "twenty-one", "non-break"]),
        ("a--b a-'b -a- 'tis o' x_y", ["a", "b", "a", "b", "a", "tis", "o", "x", "y"]),
        ("so\u00adft क्\u200dष end\u00ad", ["so\u00adft", "क्\u200dष", "end"]),
        ("1,234.5 a@b.c 10% №5 ½ ²", ["1", "234", "5", "a", "b", "c", "10", "5", "½", "²"]),
        ("e\u0301a a\u0085b a\u2028b \U0001f600", ["e\u0301a", "a", "b", "a", "b"]),
        ("ok\ufffd \u0870a", ["ok", "a"]),
        ("", []),
    ],
)
def test_the_unicode_rule(text: str, words: list[str]) -> None:
    assert tokenizer_of(WordRules())(text) == words


@pytest.mark.parametrize(
    ("rules", "text", "words"),
    [
        (WordRules("whitespace"), " A,b\u00a0c\u3000d\x1ce\u200bf ", ["a,b", "c", "d", "e\u200bf"]),
        (WordRules("characters", case="keep"), "aÉ 漢\u3000\U0001f600e\u0301", [*"aÉ漢\U0001f600e\u0301"]),
        (WordRules("regex:[a-z]+", case="keep"), "ab1CD ef", ["ab", "ef"]),
        (WordRules("regex:x*"), "axx", ["xx"]),
        (WordRules("regex:(a)(b)?"), "abA", ["ab"]),
        (WordRules("builtins:list"), "Ab ", ["a", "b", " "]),
        (WordRules(case="keep"), "Straße", ["Straße"]),
        (WordRules(case="fold"), "Straße ΟΔΟΣ οδος", ["strasse", "οδοσ", "οδοσ"]),
        (WordRules(normalize="nfc"), "e\u0301 é", ["é", "é"]),
        (WordRules(normalize="nfkc"), "ﬁ ２ ①", ["fi", "2", "1"]),
        (WordRules(min_length=2), "a ab 你 \U00020000\U00020000 é", ["ab", "\U00020000\U00020000"]),
        (WordRules(min_length=2, case="fold"), "ß", ["ss"]),
        (WordRules(stop_words=frozenset({"THE", "don’t", "e\u0301"}), normalize="nfc"),
         "The don't é cat", ["cat"]),
        (WordRules(stop_words=frozenset({"the"}), case="keep"), "The the", ["The"]),
        (WordRules(ngrams=2, stop_words=frozenset({"of"})), "A of b c", ["a b", "b c"]),
        (WordRules(ngrams=3), "a b", []),
    ],
)  # fmt: skip
def test_the_other_rules(rules: WordRules, text: str, words: list[str]) -> None:
    assert tokenizer_of(rules)(text) == words


def test_lines_end_as_in_spark_only() -> None:
    assert lines_of("a\nb\r\nc\rd\n\n\x0be\u0085\u2028f") == ["a", "b", "c", "d", "", "\x0be\u0085\u2028f"]


# Letters of some scripts, marks, digits, what joins, what parts; and letters that are newer than Unicode 13.
PIECES = st.sampled_from([*"aBéß漢я٣'’-‐‑_.,\u0301\u00ad\u200b \u00a0", "\U0001f600", "\u0870", "\ua7c0"])
TEXT = st.lists(PIECES, max_size=14).map("".join)


def plain_words(text: str) -> list[str]:
    """The unicode rule as a loop over characters, for the pieces above."""

    def is_letter(at: int) -> bool:
        known = 0 <= at < len(text) and text[at] not in "\u0870\ua7c0"
        return known and unicodedata.category(text[at])[0] in "LMN"

    words, word, at = [], "", 0
    while at < len(text):
        end = at + 1
        if is_letter(at):
            word += text[at]
        elif word and text[at] in "'’-‐‑" and is_letter(end):
            word += {"’": "'", "‐": "-", "‑": "-"}.get(text[at], text[at])
        else:
            while end < len(text) and text[at] in "\u00ad\u200b" and text[end] in "\u00ad\u200b":
                end += 1
            if word and text[at] in "\u00ad\u200b" and is_letter(end):
                word += text[at:end]
            else:
                words, word = words + [word] * bool(word), ""
        at = end
    return words + [word] * bool(word)


@given(TEXT)
def test_the_unicode_rule_is_a_plain_loop(text: str) -> None:
    assert tokenizer_of(WordRules(case="keep"))(text) == plain_words(text)


def test_chinese_is_cut_by_jieba_and_the_rest_by_the_rule() -> None:
    assert tokenizer_of(WordRules("cjk"))("我来到北京清华大学, Don’t 42") == [
        "我", "来到", "北京", "清华大学", "don't", "42"
    ]  # fmt: skip
    text = "李小福是创新办主任也是云计算方面的专家"
    usual = tokenizer_of(WordRules("cjk"))(text)
    own = tokenizer_of(WordRules("cjk", user_dictionary="云计算 5\n李小福 2 nr\n创新办 3 i\n"))(text)
    assert "云计算" not in usual
    assert own == ["李小福", "是", "创新办", "主任", "也", "是", "云计算", "方面", "的", "专家"]
    assert tokenizer_of(WordRules("cjk"))(text) == usual  # the user's words stay with the user's rules


def test_a_run_that_no_text_has_is_cut_before_jieba_sees_it() -> None:
    run = "我" + "来到" * 7_500  # 15,001 characters: the 10,000th is the first half of a word
    expected = Counter({"我": 1, "来到": 7_499, "来": 1, "到": 1})
    assert Counter(tokenizer_of(WordRules("cjk"))(run)) == expected
    assert len(tokenizer_of(WordRules("cjk"))("龘" * 11_000)) == 11_000


def test_a_dictionary_is_loaded_once_and_its_words_that_jieba_never_finds_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jieba

    loaded: list[object] = []
    usual = jieba.Tokenizer.load_userdict
    monkeypatch.setattr(
        jieba.Tokenizer, "load_userdict", lambda self, file: (loaded.append(file), usual(self, file))
    )
    for ngrams in (1, 2, 3):  # other rules, the same dictionary
        rules = WordRules("cjk", user_dictionary="云计算方 9\n", ngrams=ngrams)
        for _ in range(3):
            assert "云计算方" in " ".join(tokenizer_of(rules)("也是云计算方面"))
    assert len(loaded) == 1
    text = "\ufeff云计算 5\r\n\nT恤 3 n\n云计算\t5\n㐀㐁\niPhone 手机 2 nz\n李小福 nr"
    never = ["\ufeff云计算", "T恤", "云计算\t5", "㐀㐁", "iPhone 手机"]
    assert never_found(text) == never
    cut = tokenizer_of(WordRules("cjk", case="keep", user_dictionary=text))
    found = cut("云计算 T恤 云计算\t5 㐀㐁 iPhone 手机 李小福")
    assert "李小福" in found
    assert not {*never} & {*found}


def test_a_dictionary_that_jieba_cannot_read() -> None:
    with pytest.raises(ParameterError, match=r"`user_dictionary`: expected `word \[frequency\] \[tag\]` in"):
        tokenizer_of(WordRules("cjk", user_dictionary=f"云计算 {'9' * 5_000}"))


def test_chinese_without_jieba_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InstallationError, match=r"package `jieba`: .* pip install 'saltpan\[cjk\]'"):
        check(WordRules("cjk"))
    check(WordRules())


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (WordRules("unicod"), "expected one of unicode, .*module:function, got unicod. .*`unicode`"),
        (WordRules("regex:("), r"regex:\(`: expected a regular expression of Python, got missing \)"),
        (WordRules("regex:"), "expected a regular expression of Python, got none"),
        (WordRules("no_such_module:cut"), "got ModuleNotFoundError: No module named 'no_such_module'"),
        (WordRules("string:capword"), "got no function `capword` in string.*`capwords`"),
        (WordRules(":cut"), "expected one of unicode"),
        (WordRules(""), "expected one of unicode, .*, got nothing"),
        (WordRules(min_length=0), "`min_length`: expected a whole number >= 1, got 0"),
        (WordRules(ngrams=0), "`ngrams`: expected a whole number >= 1, got 0"),
        (WordRules(user_dictionary="x"), "`user_dictionary`: expected tokenizer cjk"),
    ],
)
def test_rules_that_cannot_be_honoured(rules: WordRules, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        check(rules)


@pytest.mark.parametrize(
    ("body", "got"),
    [
        ("'a'", "one str"),
        ("[1]", "a int among them"),
        ("None", "a NoneType"),
        ("iter(['a', None])", "a NoneType among them"),
        (r"['a', 'é\ud800']", "half a character among them"),
        ("1 / 0", r"ZeroDivisionError: division by zero \(strange_words\.py:2\)"),
    ],
)
def test_a_function_that_gives_no_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, got: str
) -> None:
    (tmp_path / "strange_words.py").write_text(f"def cut(line):\n    return {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "strange_words", raising=False)
    tokens = tokenizer_of(WordRules("strange_words:cut", min_length=len(got)))  # rules of its own each time
    with pytest.raises(ParameterError, match=f"expected a function that gives a list of words .*, got {got}"):
        tokens("x")
    monkeypatch.delitem(sys.modules, "strange_words")


def test_stop_words_that_come_with_the_suite() -> None:
    assert stop_words("en") & {"the", "don't", "word"} == {"the", "don't"}
    with pytest.raises(UnknownNameError, match=r"`de`: expected one of en, zh"):
        stop_words("de")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, None),
        ({"tokenizer": "whitespace", "ngrams": 3, "min_length": 2}, None),
        ({"tokenizer": "characters", "case": "keep"}, None),
        ({"tokenizer": "cjk"}, "cjk needs jieba"),
        ({"tokenizer": "regex:a"}, "regex: takes a pattern of Python"),
        ({"tokenizer": "builtins:list"}, "builtins:list is a function of Python"),
        ({"normalize": "nfc"}, "normalize nfc needs Python"),
        ({"case": "fold"}, "case fold needs Python"),
    ],
)
def test_what_built_in_functions_cannot_do(asked: dict[str, Any], why: str | None) -> None:
    assert why_not_sql(WordRules(**asked)) == why


def test_rules_travel() -> None:
    rules = WordRules("cjk", stop_words=frozenset({"的"}), user_dictionary="云计算")
    assert pickle.loads(pickle.dumps(rules)) == rules
    assert hash(rules) == hash(pickle.loads(pickle.dumps(rules)))
