"""What is known of a client while it is connected."""

from tidelog.broker.sessions import ANONYMOUS, LONGEST_SOFTWARE, Endpoint, Principal, Session

LISTENER = Endpoint("PLAINTEXT", "localhost", 9092)


def test_somebody_of_whom_nothing_is_known_is_anonymous_as_in_kafka() -> None:
    session = Session(LISTENER)
    assert session.principal is ANONYMOUS
    assert str(session.principal) == "User:ANONYMOUS"
    assert (session.listener, session.client_id, session.software) == (LISTENER, None, ("", ""))


def test_principals_are_shown_with_their_kind() -> None:
    session = Session(LISTENER, "10.0.0.1", Principal("User", "alice"))
    session.client_id = "app"
    assert repr(session) == "<session of User:alice from 10.0.0.1, client id 'app'>"


def test_no_more_than_a_bounded_part_of_what_a_client_says_of_itself_is_kept() -> None:
    session = Session(LISTENER)
    session.introduce("n" * 30_000, "v" * 30_000)
    assert session.software == ("n" * LONGEST_SOFTWARE, "v" * LONGEST_SOFTWARE)
