"""The types that messages are made of."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Buffer: TypeAlias = bytes | bytearray | memoryview


class RecordSource:
    """Records of a response that are not one buffer in memory: a range of a file, or several cached batches.

    The encoder needs its size only; the object itself becomes one of the chunks.
    """

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError


Records: TypeAlias = bytes | bytearray | memoryview | RecordSource
Inserts: TypeAlias = list[tuple[int, Records]]  # records, each with its position in the output

NO_UUID = bytes(16)
EMPTY: list[Any] = []  # stands for "a new list" in the signatures of the generated classes; never changed
MAX_STRING_SIZE = 0x7FFF

new: Callable[[type[T]], T] = object.__new__  # makes an object without calling its __init__


class Struct:
    """The base class of all messages and their structs. The slots are the fields, in the order of the protocol."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # messages are mutable

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"
