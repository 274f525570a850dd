"""Small JSON files with a checksum: one line with an object that has a "version", and one line with the CRC32C of the
first line, in hex.

The checkpoint of a partition and the state of its compaction are such files: docs/formats/local-log.md.
"""

import json
from typing import Any

from tidelog.records.crc import crc32c


def as_json(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, separators=(",", ":"))


def seal(line: bytes) -> bytes:
    """The content of a file with this object, given as JSON."""
    return line + b"\n%08x\n" % crc32c(line)


def unseal(content: bytes, version: int) -> dict[str, Any] | None:
    """The object without its version; None if the content is damaged or of another version."""
    line, _, rest = content.partition(b"\n")
    if rest != b"%08x\n" % crc32c(line):
        return None
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict) or values.pop("version", None) != version:
        return None
    return values
