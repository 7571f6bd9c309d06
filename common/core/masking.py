"""Secrets never leave the process in text: logs, records and printed configuration all pass through here.

A key is split into words (`fs.s3a.secret.key`, `sessionToken`, `DB_PASSWORD`) and judged by them; a substring
test would hide `tokenizer` and miss `account.key`. In doubt, text after a secret's key is hidden, not shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Final

MASK: Final = "*****"

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Tried on a key's lower-case words with one space between them.
_SECRET = re.compile(
    r"secret(?!ar)|password(?!less)|passwd|passphrase|credential|(?:access|account|api|private|secret)key"
    r"|(?:token|pwd)\b|\b(?:sas|sig|signature|authorization|bearer|cookie|jwt|storepass|keypass)\b"
    r"|\b(?:access|account|api|auth|encryption|private|shared|signing|storage) key\b"
    r"|\b(?:db|user|jdbc|mysql|root|admin|proxy|ldap|smtp|key|store) pass\b|\bpass (?:word|phrase)\b"
)
# What such a key measures or points to is no secret: token_count, password.file, credentials.provider.
_HARMLESS = re.compile(
    r"\b(?:counts?|rows|bytes|bits|seconds|ms|ratio|length|size|limit|ttl|path|file|dir|type"
    r"|pattern|regex|provider|columns?|enabled)$"
)

# A cheap test first: most text holds nothing that could be a secret.
_CLUE = re.compile(
    r"secret|pass|pwd|token|key|credential|sas|sig|authorization|bearer|cookie|jwt|//|oracle|eyj|akia|asia|-----begin",
    re.IGNORECASE,
)
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]{0,40}?PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.DOTALL
)
# Possessive quantifiers and the guard in front of names keep this linear on any text. They stand behind
# single characters only: behind a group Python before 3.11.5 goes on at a wrong place (gh-106052).
_SCAN = re.compile(
    r"""
      (?<=:)//[^\s/?#:@"'<>\[]*+:(?P<userinfo>
          [^\s"'<>/?#]+(?=@)                # up to the last @ before the path
        | (?!\d++[,/?#])[^\s"'<>@]{1,200}(?:@[^\s"'<>/?#@]*)*(?=@)   # a slash in it; not a port
      )
    | jdbc:oracle:\w++:[^\s/@:"']*+/(?P<oracle>[^\s@"']++)(?=@)
    | (?<![\w.\-])(?:
        (?P<shape>eyJ[\w\-]{6,}+\.[\w\-]{6,}+\.[\w\-]++ | (?:AKIA|ASIA)[0-9A-Z]{16}(?!\w))
      | (?i:bearer)[ \t]++(?P<bearer>(?=\S*\d)[\w.~+/=\-]{6,}+)
      | (?P<name>[\w.\-]++)(?:(?:\]|\\*+["']\]?)?[ \t]*+(?:=>|==?|:(?!:)=?)[ \t]*+ | </name>\s*+<value>)
      | (?P<flag>--?[A-Za-z][\w.\-]*+)(?:[ \t]++|\\*+["'][ \t]*+,?\s*+)(?!--)
      | (?P<pair>[\w\-]++\.[\w.\-]++)\\*+["'],[ \t]*+(?=\\*+["'])
      | (?<![^\n])(?P<property>spark\.[\w.\-]++)[ \t]++(?![=:])
      )
    """,
    re.VERBOSE,
)
_VALUE = re.compile(
    r"""
      (?P<escaped>\\++["'])(?P<inner>[^\n]*?)(?=(?P=escaped))
    | "(?P<double>(?:[^"\\\n]|\\.)*)"
    | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<run>(?=\S)(?P<group>\{[^{}\n]*+\}|\[[^\[\]\n]*+\])?(?:
          [^\s;&"'\\]
        | \\++(?!["'])
        | \\*+["'](?=[^\s,;:)\]}>\\])      # a quote inside the value, not at its end
        | &(?![\w.\-]++=)                  # a URL's next parameter ends the value
        | ;(?=\S)(?![\w.\-\x20]++=)        # so does a JDBC URL's next property
      )*)
    """,
    re.VERBOSE,
)
_SCHEME = re.compile(
    r"(?:bearer|basic|negotiate|token|(?P<fields>digest|aws4-hmac-sha256))[ \t]++", re.IGNORECASE
)
_ARGUMENT = re.compile(r"(-{0,2}[\w.\-]+)=(.+)", re.DOTALL)
_NAMING_FIELDS = ("key", "name")
_NAMED_FIELDS = frozenset({"value", "asked", "effective", "default"})


def is_secret_key(key: str) -> bool:
    """Whether the value of such a key, flag or column name should not be shown.

    >>> is_secret_key("spark.hadoop.fs.s3a.secret.key"), is_secret_key("--tokenizer")
    (True, False)
    """
    return _judge(key[-256:])


def mask_value(key: str, value: str) -> str:
    """The value as it may be shown: hidden when its key is secret, else with the secrets inside it hidden.

    >>> mask_value("password", "hunter2"), mask_value("url", "s3a://me:hunter2@bucket")
    ('*****', 's3a://me:*****@bucket')
    """
    return MASK if value and is_secret_key(key) else mask_text(value)


def mask_text(text: str) -> str:
    """The text with every recognised secret replaced by `*****`. Doing it twice changes nothing.

    >>> mask_text("--user me --password hunter2 --tokenizer unicode")
    '--user me --password ***** --tokenizer unicode'
    """
    if not _CLUE.search(text):
        return text
    text = _KEY_BLOCK.sub(MASK, text)
    parts: list[str] = []
    done = position = 0
    while found := _SCAN.search(text, position):
        position = found.end()
        span = _secret_span(found)
        if span:
            parts += (text[done : span[0]], MASK)
            done = position = span[1]
    parts.append(text[done:])
    return "".join(parts)


def mask_tree(tree: Any) -> Any:
    """The same mapping or list with its secrets hidden, made of plain JSON values only.

    Dict keys decide; in a list, a flag that looks secret hides the element after it. None and booleans under
    a secret key stay. Not-a-number and infinite floats become text; other objects become their masked text.

    >>> mask_tree({"password": "hunter2", "argv": ["--token", "abc", "--n", "10"]})
    {'password': '*****', 'argv': ['--token', '*****', '--n', '10']}
    """
    if isinstance(tree, Mapping):
        return _mask_mapping(tree)
    if isinstance(tree, (set, frozenset)):
        return _mask_list(sorted(tree, key=str))
    if isinstance(tree, Sequence) and not isinstance(tree, (str, bytes, bytearray)):
        return _mask_list(tree)
    return _plain(tree)


@lru_cache(maxsize=4096)
def _judge(key: str) -> bool:
    words = " ".join(_WORD.findall(key)).lower()
    return bool(_SECRET.search(words)) and not _HARMLESS.search(words)


def _secret_span(found: re.Match[str]) -> tuple[int, int] | None:
    """Where the secret lies that a match of _SCAN leads to, if it leads to one."""
    kind = found.lastgroup or ""
    if kind not in ("name", "flag", "pair", "property"):
        return found.span(kind)
    if not is_secret_key(found[kind]):
        return None
    text, start = found.string, found.end()
    if found[kind].lower().endswith("authorization") and (scheme := _SCHEME.match(text, start)):
        start = scheme.end()
        if scheme["fields"]:  # a list of fields up to the end of the line
            end = text.find("\n", start)
            return start, len(text) if end < 0 else end
    value = _VALUE.match(text, start)
    if not value:
        return None
    start, end = value.span(value.lastgroup or 0)
    if (
        value.lastgroup == "run"
    ):  # a quote never closed, and what closes the call around it, are not the value
        end = max(value.end("group"), start + len(value["run"].rstrip(")]}>,.")))
        start = end - len(text[start:end].lstrip("\\\"'"))
    return (start, end) if start < end else None


def _mask_mapping(tree: Mapping[Any, Any]) -> dict[str, Any]:
    names = [tree[field] for field in _NAMING_FIELDS if isinstance(tree.get(field), str)]
    named_secret = any(is_secret_key(name) for name in names)
    return {
        mask_text(str(key)): _hidden(value)
        if is_secret_key(str(key)) or (named_secret and key in _NAMED_FIELDS)
        else mask_tree(value)
        for key, value in tree.items()
    }


def _mask_list(items: Iterable[Any]) -> list[Any]:
    masked: list[Any] = []
    before: Any = None
    items = list(items)
    for item in items:
        if not isinstance(item, str):
            masked.append(mask_tree(item))
        elif _announces(before, pair=len(items) == 2) and not item.startswith("--"):
            masked.append(_hidden(item))
        else:
            masked.append(_mask_argument(item))
        before = item
    return masked


def _announces(item: Any, *, pair: bool) -> bool:
    """Whether the next list element is this one's value: a flag, or the key of a (key, value) pair."""
    if not isinstance(item, str) or not re.fullmatch(r"[\w.\-]+", item):
        return False
    return (item.startswith("-") or (pair and "." in item)) and is_secret_key(item)


def _mask_argument(item: str) -> str:
    """One element of argv is one value, spaces and all: `--password=hunter 2`."""
    found = _ARGUMENT.fullmatch(item)
    if not found:
        return mask_text(item)
    key, value = found.groups()
    return f"{key}={MASK if is_secret_key(key) else _mask_argument(value)}"


def _hidden(value: Any) -> Any:
    """The same shape with every leaf hidden."""
    if value is None or isinstance(value, bool) or value == "":
        return value
    if isinstance(value, Mapping):
        return {mask_text(str(key)): _hidden(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_hidden(item) for item in value]
    return MASK


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return mask_text(str(value))
