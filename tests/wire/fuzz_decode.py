"""Coverage-guided fuzzing of the decoders; not run by pytest.

    pip install atheris
    python -m tests.wire.fuzz_decode -max_total_time=600 [a folder for the corpus]

The first bytes of an input choose the message and its version. Anything but a message or a `RemoteProtocolError` is a
finding; so is a decoded message that cannot be encoded again.
"""

import sys
from typing import Any

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["tidelog.wire"]):
    from tests.wire.random_messages import all_cases
    from tidelog.wire.envelope import decode_request_body, decode_request_header
    from tidelog.wire.framing import FrameReader
    from tidelog.wire.protocol_errors import RemoteProtocolError

CASES: list[Any] = list(all_cases())


def check_message(data: bytes) -> None:
    case = CASES[int.from_bytes(data[:2], "big") % len(CASES)]
    message = case.codec.decode(data[2:], case.version)
    again = case.codec.decode(case.codec.encode(message, case.version), case.version)
    assert again == message or "nan" in repr(message)


def check_stream(data: bytes) -> None:
    reader = FrameReader(max_frame_size=1 << 16)
    for frame in reader.feed(data):
        decode_request_body(decode_request_header(frame), frame)


def check(data: bytes) -> None:
    try:
        if data[:1] == b"\xff":
            check_stream(data[1:])
        else:
            check_message(data)
    except RemoteProtocolError:
        pass


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
