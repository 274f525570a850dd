"""Makes a module from a definition, and the table of APIs."""

import re
import subprocess
import sys
from pathlib import Path

from tools.wiregen.classes import class_lines
from tools.wiregen.readers import CallingReader, InPlaceReader, carries_bytes
from tools.wiregen.schema import Definition, Message, Struct, load_all
from tools.wiregen.source import Formats, snake
from tools.wiregen.writers import CallingWriter, InPlaceWriter

GENERATED = Path(__file__).parents[2] / "src" / "tidelog" / "wire" / "generated"

# The names that a generated module may import.
_IMPORTS = {
    "tidelog.wire.codec": ("MessageCodec",),
    "tidelog.wire.primitives": ("EMPTY", "NO_UUID", "Buffer", "Inserts", "Records", "Struct", "new"),
    "tidelog.wire.reading": (
        "long_size", "long_string_size", "null_refused", "nullable_struct", "skip_tagged_fields", "some_numbers",
        "spend", "tag_count", "tagged_field", "too_many", "wrong_tagged_size",
        *(nullable + compact + kind
          for nullable in ("", "nullable_") for compact in ("", "compact_")
          for kind in ("array", "data", "numbers", "string")),
    ),
    "tidelog.wire.writing": (
        "absent", "null_in_this_version", "packed_numbers", "put_long_string_size", "put_nullable_struct",
        "put_tagged_field", "put_uvarint", "wrong_uuid",
        *("put_" + nullable + compact + kind
          for nullable in ("", "nullable_") for compact in ("", "compact_")
          for kind in ("array", "data", "numbers", "string", "strings")),
    ),
}  # fmt: skip


class FunctionTable:
    """Functions of one struct, one for each run of versions that share the same code."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.runs: list[tuple[int, int, str]] = []

    def add(self, version: int, body: str) -> None:
        if self.runs and self.runs[-1][1:] == (version - 1, body):
            low, _, _ = self.runs.pop()
            self.runs.append((low, version, body))
        else:
            self.runs.append((version, version, body))

    def name(self, version: int) -> str:
        low, high, _ = next(run for run in self.runs if run[0] <= version <= run[1])
        return f"{self.prefix}_v{low}" + (f"_to_v{high}" if high > low else "")


class MessageFunctions:
    """The readers and writers of one message and its structs."""

    def __init__(self, definition: Definition, message: Message, formats: Formats) -> None:
        self.definition = definition
        self.message = message
        self.role = "" if message.role == "data" else f"_{message.role}"
        # Inner structs come first: callers need the names of their functions.
        structs = [definition.structs[name] for name in definition.structs_of(message)] + [message.top]
        self.readers = {struct.name: FunctionTable(f"_read{self._part(struct)}") for struct in structs}
        self.writers = {struct.name: FunctionTable(f"_write{self._part(struct)}") for struct in structs}
        reader_class, writer_class = (
            (InPlaceReader, InPlaceWriter) if definition.is_hot else (CallingReader, CallingWriter)
        )
        self.reading = reader_class(definition, message, formats, lambda name, v: self.readers[name].name(v))
        self.writing = writer_class(definition, message, formats, lambda name, v: self.writers[name].name(v))
        for struct in structs:
            for version in definition.versions_of(message, struct.name):
                self.readers[struct.name].add(version, self.reading.body(struct, version))
                self.writers[struct.name].add(version, self.writing.body(struct, version))

    def _part(self, struct: Struct) -> str:
        return self.role if struct is self.message.top else f"{self.role}_{snake(struct.name)}"

    def lines(self) -> list[str]:
        self._drop_uncalled(self.readers)
        self._drop_uncalled(self.writers)
        lines: list[str] = []
        for name, readers in self.readers.items():
            for low, _, body in readers.runs:
                buf = "buf" if "buf" in body else "_buf"
                arguments = f"{buf}: {self.reading.buffer_type}, pos: int"
                lines += [f"def {readers.name(low)}({arguments}) -> tuple[{name}, int]:", body, ""]
        for name, writers in self.writers.items():
            variable = "message" if name == self.message.top.name else snake(name)
            for low, _, body in writers.runs:
                inserts = "inserts" if "inserts" in body else "_inserts"
                subject = variable if f"{variable}." in body else f"_{variable}"
                out = "out" if "out" in body else "_out"
                arguments = f"{out}: bytearray, {subject}: {name}, {inserts}: Inserts"
                lines += [f"def {writers.name(low)}({arguments}) -> None:", body, ""]
        return lines

    def _drop_uncalled(self, tables: dict[str, FunctionTable]) -> None:
        """Structs that are read or written in place need no function."""
        outermost_first = list(reversed(tables.values()))
        for place, table in enumerate(outermost_first[1:], 1):
            callers = "".join(body for caller in outermost_first[:place] for _, _, body in caller.runs)
            called = set(re.findall(r"\w+", callers))
            table.runs = [run for run in table.runs if table.name(run[0]) in called]

    def codec_lines(self) -> list[str]:
        top, versions = self.message.top.name, self.definition.versions
        constant = {"": "DATA", "_request": "REQUEST", "_response": "RESPONSE"}[self.role]
        reads = [f"        {self.readers[top].name(version)}," for version in versions]
        writes = [f"        {self.writers[top].name(version)}," for version in versions]
        views = carries_bytes(self.definition, self.message)
        opening = f'{constant}: MessageCodec[{top}] = MessageCodec(\n    "{top}",\n    {versions.low},'
        return [opening, "    (", *reads, "    ),", "    (", *writes, "    ),", f"    holds_views={views},", ")", ""]


def module_text(file_name: str, definition: Definition) -> str:
    """The source of the module, not formatted yet."""
    formats = Formats()
    body: list[str] = []
    for message in definition.messages:
        for name in [*definition.structs_of(message), message.top.name]:
            body += class_lines(definition.structs[name], message.role, definition.versions)
    functions = [MessageFunctions(definition, message, formats) for message in definition.messages]
    for part in functions:
        body += part.lines()
    for part in functions:
        body += part.codec_lines()
    text = "\n".join(body)
    what = f"API key {definition.api_key}, " if definition.api_key is not None else ""
    low, high = definition.versions.low, definition.versions.high
    head = [
        f'"""{definition.name}: {what}v{low} to v{high}."""',
        f"# Made by tools/wiregen from messages/{file_name}.txt; do not edit.",
        "# ruff: noqa: A002, RUF023",  # names and their order are the protocol's
        "",
        "from __future__ import annotations",
        "",
        *(["import struct", ""] if formats.used else []),
        *_import_lines(text),
        "",
        *formats.constants(text),
        "",
    ]
    return "\n".join(head) + text + "\n"


def _import_lines(text: str) -> list[str]:
    mentioned = set(re.findall(r"\w+", text))
    lines = []
    for module, names in _IMPORTS.items():
        needed = ", ".join(name for name in names if name in mentioned)
        if needed:
            lines.append(f"from {module} import {needed}")
    return lines


def table_text(definitions: dict[str, Definition]) -> str:
    rows = [
        f'    ({d.api_key}, "{d.name}", "{file_name}", {d.versions.low}, {d.versions.high}, '
        f"{None if d.flexible.empty else d.flexible.low}),"
        for file_name, d in sorted(definitions.items(), key=lambda item: item[1].api_key or 0)
        if d.api_key is not None
    ]
    return "\n".join(
        [
            '"""Every API: key, name, module, lowest and highest version, first flexible version."""',
            "# Made by tools/wiregen from messages/*.txt; do not edit.",
            "",
            "ROWS: tuple[tuple[int, str, str, int, int, int | None], ...] = (",
            *rows,
            ")",
            "",
        ]
    )


def generate(directory: Path) -> None:
    """Writes every generated file into the directory, and formats it."""
    definitions = load_all()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "__init__.py").write_text('"""One module per API; made by tools/wiregen, never edited."""\n')
    (directory / "table.py").write_text(table_text(definitions))
    for file_name, definition in definitions.items():
        (directory / f"{file_name}.py").write_text(module_text(file_name, definition))
    ruff = Path(sys.executable).with_name("ruff")
    config = Path(__file__).parents[2] / "pyproject.toml"
    for command in (["format"], ["check", "--fix"], ["format"]):
        subprocess.run([ruff, *command, "--quiet", "--config", config, directory], check=True)  # noqa: S603
