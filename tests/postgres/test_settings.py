"""The URL of the database: what is accepted, and that no part of a password is ever shown."""

import pytest

from tidelog.errors import InvalidSettings
from tidelog.postgres import PostgresSettings


@pytest.mark.parametrize(
    ("url", "plain", "password", "schema"),
    [
        ("postgresql://u:p@h:5433/db", "postgresql://u@h:5433/db", "p", "tidelog"),
        ("postgres://u@h/db", "postgresql://u@h/db", None, "tidelog"),
        ("postgresql://u:a%40b%2Fc@h/db?schema=other", "postgresql://u@h/db", "a@b/c", "other"),
        ("postgresql://u:p@w@h/db", "postgresql://u@h/db", "p@w", "tidelog"),
        (
            "postgresql://u@h/db?password=secret&sslmode=require",
            "postgresql://u@h/db?sslmode=require",
            "secret",
            "tidelog",
        ),
        (
            "postgresql://u:p@a:1,b:2,[::1]:3,[::1]/db",
            "postgresql://u@a:1,b:2,[::1]:3,[::1]/db?target_session_attrs=read-write",
            "p",
            "tidelog",
        ),
    ],
)
def test_a_url_is_taken_apart(url: str, plain: str, password: str | None, schema: str) -> None:
    settings = PostgresSettings.parse(url)
    assert (settings.url, settings.password, settings.schema) == (plain, password, schema)


def test_a_password_or_schema_that_is_given_separately_counts() -> None:
    settings = PostgresSettings.parse("postgresql://u:no@h/db?schema=no", password="yes", schema="mine")
    assert (settings.password, settings.schema) == ("yes", "mine")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hunter2@h/db",
        "u:hunter2@h/db",
        "postgresql://u:hun/hunter2@h/db",
        "postgresql://u:hun#hunter2@h/db",
        "postgresql://u:hun?hunter2@h/db",
        "postgresql://u:hunter2@h:port/db",
        "postgresql://u:hunter2@h:70000/db",
        "postgresql://u:hunter2@h",
        "postgresql://:hunter2@h/db",
        "postgresql://u:hunter2@h/db/hunter2",
        "postgresql://u:hunter2@h/db?hunter2=1",
        "postgresql://u:hunter2@h/db?schema=Hunter2",
        "postgresql://u:hunter2@h/db?sslpassword=hunter2",
    ],
)
def test_a_wrong_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        PostgresSettings.parse(url)
    assert "hun" not in str(refused.value).lower()


def test_all_problems_are_told_together() -> None:
    with pytest.raises(InvalidSettings) as refused:
        PostgresSettings.parse("postgresql://h:x?y=1", schema="a b", deadline_s=0)
    assert len(refused.value.problems) == 6


def test_the_password_is_in_no_text() -> None:
    settings = PostgresSettings.parse("postgresql://u:hunter2@h/db?sslmode=require")
    assert str(settings) == "postgresql://u@h/db"
    assert "hunter2" not in repr(settings)
