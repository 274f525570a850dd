"""Builds the source code of generated functions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZES = {"x": 1, "?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8, "16s": 16}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


@dataclass
class Formats:
    """The `struct` formats that a module uses, as named constants of the module."""

    used: set[tuple[str, ...]] = field(default_factory=set)

    def name(self, codes: list[str]) -> str:
        self.used.add(tuple(codes))
        return self._name(codes)

    @staticmethod
    def _name(codes: list[str] | tuple[str, ...]) -> str:
        letters = {"?": "t", "B": "u", "H": "w", "16s": "g"}  # truth, unsigned, word, guid
        return "_" + "".join(letters.get(code, code) for code in codes)

    def constants(self, text: str) -> list[str]:
        """The constants that the text mentions."""
        mentioned = set(re.findall(r"\w+", text))
        used = [codes for codes in self.used if self._name(codes) in mentioned]
        ordered = sorted(used, key=lambda codes: (len(codes), codes))
        return [f'{self._name(codes)} = struct.Struct(">{"".join(codes)}")' for codes in ordered]


@dataclass
class Source:
    """The body of one function. Fixed-width fields are collected in `run` up to the next field of variable width."""

    formats: Formats
    depth: int = 1
    lines: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    run: list[tuple[str, str]] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.add(opening)
        self.depth += 1
        yield
        self.depth -= 1

    def unique(self, name: str) -> str:
        """A local name that is not used in the function yet."""
        candidate, number = name, 1
        while candidate in self.names:
            number += 1
            candidate = f"{name}_{number}"
        self.names.add(candidate)
        return candidate

    def text(self) -> str:
        return "\n".join(self.lines)
