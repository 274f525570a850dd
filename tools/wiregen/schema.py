"""The compact form of message definitions (`messages/*.txt`), and its parser.

One file per API, or per data format inside other messages. `docs/formats/wire.md` describes the form:

    api 0 Produce
    versions 3-13
    flexible 9+
    hot

    request
      transactional_id: string?, = null
      topic_data: []TopicProduceData
        name: string, 0-12, ignorable
        ...
    response
      ...
    struct Name
      ...
"""

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

MESSAGES = Path(__file__).parent / "messages"

_OPEN_END = 1 << 15
FIXED_TYPES = ("bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid")
VARIABLE_TYPES = ("string", "bytes", "records")


class BadSchema(Exception):
    pass


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends included."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        if text == "none":
            return cls(0, -1)
        match = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
        if match is None:
            raise BadSchema(f"not a version range: {text!r}")
        low = int(match[1])
        return cls(low, _OPEN_END if match[2] else int(match[3] or low))

    @property
    def empty(self) -> bool:
        return self.low > self.high

    def clip(self, bounds: "Versions") -> "Versions":
        clipped = Versions(max(self.low, bounds.low), min(self.high, bounds.high))
        return Versions(0, -1) if clipped.empty else clipped

    def text(self, bounds: "Versions") -> str:
        if self.high == bounds.high:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))


@dataclass(frozen=True)
class Field:
    name: str
    type: str  # a primitive type's or a struct's name
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    ignorable: bool
    default: str  # as written; "" for the default of the type

    @property
    def is_struct(self) -> bool:
        return self.type not in FIXED_TYPES and self.type not in VARIABLE_TYPES


@dataclass
class Struct:
    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass
class Message:
    """A request, a response or a data format: its top struct, which names the others."""

    role: str  # request, response or data
    top: Struct
    versions: Versions
    flexible: Versions


@dataclass
class Definition:
    """The definition in one file."""

    name: str
    api_key: int | None
    versions: Versions
    flexible: Versions
    is_hot: bool  # worth more code: structs are read and written in place, without a call each
    messages: list[Message]
    structs: dict[str, Struct]  # every struct by name, the messages' top structs included, in order of the file

    def structs_of(self, message: Message) -> list[str]:
        """The names of the structs in a message, each after the structs that it contains."""
        order: list[str] = []

        def walk(struct: Struct) -> None:
            for item in struct.fields:
                if item.is_struct and item.type not in order:
                    walk(self.structs[item.type])
                    order.append(item.type)

        walk(message.top)
        return order

    def versions_of(self, message: Message, name: str) -> list[int]:
        """The versions in which the message can hold the struct."""

        def holds(struct: Struct, version: int) -> bool:
            present = [item for item in struct.fields if item.is_struct and version in item.versions]
            return struct.name == name or any(holds(self.structs[item.type], version) for item in present)

        return [version for version in self.versions if holds(message.top, version)]

    def structs_with_functions(self, message: Message) -> list[str]:
        """Those of `structs_of` that have their own functions to read and write them, in the same order."""
        if not self.is_hot:
            return self.structs_of(message)
        structs = [message.top, *(self.structs[name] for name in self.structs_of(message))]
        used = [item.type for struct in structs for item in struct.fields if item.is_struct]
        return [name for name in self.structs_of(message) if used.count(name) > 1]


_FIELD = re.compile(r"(?P<name>[a-z][a-z0-9_]*): (?P<array>\[\])?(?P<type>\w+)(?P<null>\?)?(?P<rest>(, .+)*)")


def _parse_field(line: str, valid: Versions) -> Field:
    match = _FIELD.fullmatch(line)
    if match is None:
        raise BadSchema(f"not a field: {line!r}")
    if keyword.iskeyword(match["name"]):
        raise BadSchema(f"{match['name']} is a keyword of Python and cannot name a field")
    parsed = Field(match["name"], match["type"], bool(match["array"]), valid, Versions.parse("none"), None, False, "")
    nullable = None
    for qualifier in filter(None, match["rest"].split(", ")):
        word, _, rest = qualifier.partition(" ")
        if word == "nullable":
            nullable = Versions.parse(rest)
        elif word == "tag":
            parsed = replace(parsed, tag=int(rest))
        elif word == "ignorable":
            parsed = replace(parsed, ignorable=True)
        elif word == "=":
            parsed = replace(parsed, default=rest)
        else:
            parsed = replace(parsed, versions=Versions.parse(word).clip(valid))
    if match["null"]:
        nullable = parsed.versions
    if nullable is not None:
        parsed = replace(parsed, nullable=nullable.clip(parsed.versions))
    return parsed


def parse(text: str) -> Definition:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    kind, *names = lines[0].split()
    api_key, name = (int(names[0]), names[1]) if kind == "api" else (None, names[0])
    versions = Versions.parse(lines[1].removeprefix("versions "))
    flexible = Versions.parse(lines[2].removeprefix("flexible ")).clip(versions)
    is_hot = lines[3] == "hot"
    definition = Definition(name, api_key, versions, flexible, is_hot, [], {})

    def open_struct(struct_name: str) -> Struct:
        if struct_name in definition.structs:
            raise BadSchema(f"{struct_name} is defined twice in {name}")
        definition.structs[struct_name] = struct = Struct(struct_name)
        return struct

    open_structs: list[Struct] = []  # the struct that a field of each depth belongs to
    for line in lines[4 if is_hot else 3 :]:
        depth = (len(line) - len(line.lstrip())) // 2
        words = line.split()
        if depth == 0:
            if words[0] == "struct":
                open_structs = [open_struct(words[1])]
                continue
            top = open_struct(name if words[0] == "fields" else name + words[0].capitalize())
            role = "data" if words[0] == "fields" else words[0]
            definition.messages.append(Message(role, top, versions, flexible))
            open_structs = [top]
            continue
        if depth > len(open_structs):
            opener = open_structs[-1].fields[-1]
            if depth != len(open_structs) + 1 or not opener.is_struct:
                raise BadSchema(f"{name}: no struct above {line.strip()!r} could contain it")
            open_structs.append(open_struct(opener.type))
        del open_structs[depth:]
        bounds = versions if depth == 1 else open_structs[-2].fields[-1].versions
        open_structs[-1].fields.append(_parse_field(line.strip(), bounds))
    for struct in definition.structs.values():
        for item in struct.fields:
            if item.is_struct and item.type not in definition.structs:
                raise BadSchema(f"{name}: {struct.name}.{item.name} is of the unknown type {item.type}")
    return definition


def load_all() -> dict[str, Definition]:
    """Every definition by the name of its file, which is also the name of its module."""
    return {path.stem: parse(path.read_text()) for path in sorted(MESSAGES.glob("*.txt"))}
