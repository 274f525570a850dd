"""CRC32C, the checksum of record batches and of our own small files.

`crc32c(buffer, initial=0)` reads any buffer without copying it.
"""

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
