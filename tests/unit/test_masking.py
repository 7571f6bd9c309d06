from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.core.masking import MASK, is_secret_key, mask_text, mask_tree, mask_value

SECRET_KEYS = [
    "password",
    "PASSWORD",
    "dbPassword",
    "db_password",
    "db-password",
    "passwd",
    "pwd",
    "userpwd",
    "DB_PASS",
    "passphrase",
    "secret",
    "client_secret",
    "clientSecret",
    "spark.authenticate.secret",
    "token",
    "--token",
    "sessionToken",
    "authtoken",
    "fs.s3a.access.key",
    "spark.hadoop.fs.s3a.secret.key",
    "aws_access_key_id",
    "AWSAccessKeyId",
    "accesskey",
    "api.key",
    "api-key",
    "apiKey",
    "APIKEY",
    "private_key",
    "privatekey",
    "fs.azure.account.key.me.blob.core.windows.net",
    "fs.azure.sas.box.me.blob.core.windows.net",
    "spark.ssl.keyPassword",
    "javax.jdo.option.ConnectionPassword",
    "credential",
    "credentials",
    "X-Amz-Signature",
    "sig",
    "Authorization",
]
HARMLESS_KEYS = [
    "tokenizer",
    "--tokenizer",
    "tokens",
    "token_count",
    "min_token_length",
    "spark.sql.parser.quotedRegexColumnNames",
    "monkey",
    "key",
    "sort_key",
    "primary.key",
    "partition_by",
    "keytab",
    "spark.kerberos.keytab",
    "carrier",
    "secretary",
    "passenger_count",
    "compass",
    "passwordless",
    "password_file",
    "fs.s3a.aws.credentials.provider",
    "design",
    "assignment",
    "signal",
    "Texas",
    "",
    "...",
]


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_secret_keys(key: str) -> None:
    assert is_secret_key(key)
    assert mask_value(key, "hunter2") == "*****"


@pytest.mark.parametrize("key", HARMLESS_KEYS)
def test_harmless_keys(key: str) -> None:
    assert not is_secret_key(key)
    assert mask_value(key, "banana") == "banana"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2", "password=*****"),
        ("password = hunter2 now", "password = ***** now"),
        ("password: hunter2, user: me", "password: *****, user: me"),
        ('{"password": "hun\\"ter2", "user": "me"}', '{"password": "*****", "user": "me"}'),
        ('{"password":"hunter2"}', '{"password":"*****"}'),
        ("{'password': 'hunter2'}", "{'password': '*****'}"),
        ('"{\\"password\\": \\"hunter2\\", \\"n\\": 1}"', '"{\\"password\\": \\"*****\\", \\"n\\": 1}"'),
        ('options["password"] = "hunter2"', 'options["password"] = "*****"'),
        ("--password hunter2 --n 3", "--password ***** --n 3"),
        ("--password=hunter2 --n 3", "--password=***** --n 3"),
        ("--password 'hun ter2' x", "--password '*****' x"),
        ("['--password', 'hunter2', '--n']", "['--password', '*****', '--n']"),
        ("-Djavax.net.ssl.keyStorePassword=hunter2 -Xmx1g", "-Djavax.net.ssl.keyStorePassword=***** -Xmx1g"),
        ("--conf spark.hadoop.fs.s3a.secret.key=hunter2", "--conf spark.hadoop.fs.s3a.secret.key=*****"),
        ("read s3a://me:hunter2@bucket/p", "read s3a://me:*****@bucket/p"),
        ("redis://:hunter2@host:6379/0", "redis://:*****@host:6379/0"),
        ("http://me:hun@ter2@host/", "http://me:*****@host/"),
        ("http://me:hun/ter2@host/", "http://me:*****@host/"),
        ("https://token:hunter2@host/x", "https://token:*****@host/x"),
        ("https://h/p?a=1&token=hunter2&b=2", "https://h/p?a=1&token=*****&b=2"),
        ("https://h/p?sv=1&sig=hunter2%3D", "https://h/p?sv=1&sig=*****"),
        (
            "jdbc:sqlserver://h:1433;user=me;password=hunter2;encrypt=true",
            "jdbc:sqlserver://h:1433;user=me;password=*****;encrypt=true",
        ),
        ("url=jdbc:x://h;password={hun;ter2};a=b", "url=jdbc:x://h;password=*****;a=b"),
        ("jdbc:oracle:thin:scott/hunter2@//db:1521/x", "jdbc:oracle:thin:scott/*****@//db:1521/x"),
        ("Authorization: Bearer hunter2", "Authorization: Bearer *****"),
        ("curl -H 'Authorization: Basic hunter2' u", "curl -H 'Authorization: Basic *****' u"),
        ('Authorization: Digest user="me", r="hunter2"\nHost: x', "Authorization: Digest *****\nHost: x"),
        ("got Bearer hunter2xyz back", "got Bearer ***** back"),
        ("password=hun,ter2 x", "password=***** x"),
        ("connect(password=hunter2)", "connect(password=*****)"),
        ("password='hunter2')", "password='*****')"),
        ('password=hun"ter2 x', "password=***** x"),
        ("password=a&hunter2 x", "password=***** x"),
        ("[('spark.x.password', 'hunter2'), ('a', 'b')]", "[('spark.x.password', '*****'), ('a', 'b')]"),
        ("spark.x.password   hunter2\nspark.y 1", "spark.x.password   *****\nspark.y 1"),
        (
            "<name>fs.s3a.secret.key</name><value>hunter2</value>",
            "<name>fs.s3a.secret.key</name><value>*****>",
        ),
        ("id AKIA" + "ABCDEFGH12345678 used", "id ***** used"),
        ("t eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl x", "t ***** x"),
        (
            "private_key: -----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nnext",
            "private_key: *****\nnext",
        ),
    ],
)
def test_secrets_inside_text(text: str, expected: str) -> None:
    assert mask_text(text) == expected
    assert mask_text(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "--tokenizer unicode",
        "--tokenizer unicode --min-token-length 2 --password",
        "monkey=banana",
        "key=carrier",
        "--group-by key --score 'count(*)'",
        "keytab=/etc/krb5.keytab",
        "--password --user me",
        "password=",
        "password: ",
        '{"password": "", "n": 1}',
        "hdfs://namenode:8020/data/user@corp/x",
        "abfss://box@account.dfs.core.windows.net/p",
        "jdbc:hive2://h1:10000,h2:10000/db;user=me@corp",
        "jdbc:oracle:thin:@//db:1521/x",
        "https://h:443/a@b",
        "spark.sql.parser.quotedRegexColumnNames=true",
        "spark.redaction.regex (?i)secret|password|token|access[.]?key",
        "token::kind",
        "the bearer of good news",
        "the password must be there",
        "passengers=3, compass=north",
    ],
)
def test_harmless_text_survives(text: str) -> None:
    assert mask_text(text) == text


def test_a_tree_keeps_its_shape() -> None:
    tree = {
        "password": "hunter2",
        "pin_token": 1234,
        "empty": {"password": None, "secret": "", "token": True},
        "credentials": {"user": "hunter2", "parts": ["hunter2", 2]},
        "url": "s3a://me:hunter2@bucket",
        "counters": {"tokens": 7, "token_count": 7, "ratio": 0.5},
        "rows": (1, 2.5, None, False),
    }
    assert mask_tree(tree) == {
        "password": MASK,
        "pin_token": MASK,
        "empty": {"password": None, "secret": "", "token": True},
        "credentials": {"user": MASK, "parts": [MASK, MASK]},
        "url": "s3a://me:*****@bucket",
        "counters": {"tokens": 7, "token_count": 7, "ratio": 0.5},
        "rows": [1, 2.5, None, False],
    }


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--password", "hunter2", "--n", "10"], ["--password", "*****", "--n", "10"]),
        (["--password", "hun ter2"], ["--password", "*****"]),
        (["--password=hun ter2", "x"], ["--password=*****", "x"]),
        (["--conf", "spark.x.password=hun ter2"], ["--conf", "spark.x.password=*****"]),
        (["--conf=spark.x.password=hun ter2"], ["--conf=spark.x.password=*****"]),
        (["--password", "--n", "10"], ["--password", "--n", "10"]),
        (["--tokenizer", "unicode"], ["--tokenizer", "unicode"]),
        (["--group-by", "key"], ["--group-by", "key"]),
        (["spark.x.password", "hunter2"], ["spark.x.password", "*****"]),
        (["password", "carrier"], ["password", "carrier"]),
        (["--input", "s3a://me:hunter2@b"], ["--input", "s3a://me:*****@b"]),
    ],
)
def test_argument_lists(argv: list[str], expected: list[str]) -> None:
    assert mask_tree(argv) == expected


def test_a_named_value_is_judged_by_its_name() -> None:
    item = {"key": "spark.x.password", "asked": "hunter2", "effective": None, "why": "comes too late"}
    assert mask_tree([item]) == [{**item, "asked": "*****"}]
    assert mask_tree({"name": "n", "value": "10"}) == {"name": "n", "value": "10"}


def test_a_tree_becomes_plain_json() -> None:
    tree = {
        1: Path("a/b"),
        "d": Decimal("1.10"),
        "nan": float("nan"),
        "inf": [float("-inf")],
        "s": {"b", "a"},
    }
    masked = mask_tree(tree)
    assert masked == {"1": "a/b", "d": "1.10", "nan": "NaN", "inf": ["-Infinity"], "s": ["a", "b"]}
    assert json.loads(json.dumps(masked, allow_nan=False)) == masked


FRAGMENTS = st.sampled_from(
    [
        *"\"'\\=:;&,(){}[]<>/@?-. \n\t",
        "://",
        "password",
        "--token",
        "secret.key",
        "Authorization: ",
        "Bearer ",
        "a1",
        "*****",
        "x@y",
        "-----BEGIN PRIVATE KEY-----",
        "spark.x.pwd",
        "jdbc:oracle:thin:",
        "Digest ",
        "hunter2",
    ]
)
TEXTS = st.lists(FRAGMENTS, max_size=25).map("".join)


@given(TEXTS)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask_text(text)
    assert mask_text(once) == once


@settings(max_examples=40)
@given(
    st.recursive(
        TEXTS | st.none() | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    )
)
def test_masking_a_tree_twice_changes_nothing(tree: object) -> None:
    once = mask_tree(tree)
    assert mask_tree(once) == once


@given(
    st.text("abcXYZ019!$%^*_+~@#/|", min_size=6, max_size=20).filter(lambda s: s[-1] not in "*"),
    st.sampled_from(
        [
            "password=%s",
            "a b password: %s c",
            '{"password": "%s"}',
            "--password %s --n 1",
            "--conf spark.x.secret=%s",
            "jdbc:x://h:1/d;user=me;password=%s;a=b",
            "https://h/p?token=%s&x=y",
            "Authorization: Bearer %s",
        ]
    ),
)
def test_no_secret_of_usual_characters_shows(secret: str, template: str) -> None:
    masked = mask_text(template % secret)
    assert secret not in masked
    assert masked == template % "*****"


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "=",
        "password",
        "password=",
        "://a:",
        ")",
        "\\",
        '"',
        "--token ",
        "bearer ",
        "a.b ",
        "&a",
        ";a ",
        "-",
        " ",
    ],
)
def test_long_text_is_read_in_one_go(piece: str) -> None:
    text = "password=hunter2 " + piece * (200_000 // len(piece))
    assert mask_text(text).startswith("password=*****")
