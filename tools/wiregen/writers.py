"""The code that writes a struct at one version: the counterpart of `readers`, in the same two styles."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from tools.wiregen.classes import is_optional, not_default
from tools.wiregen.readers import NUMBER_ARRAYS
from tools.wiregen.schema import BadSchema, Definition, Field, Message, Struct
from tools.wiregen.source import CODES, Formats, Source, snake


class WriterBuilder(ABC):
    def __init__(
        self, definition: Definition, message: Message, formats: Formats, function_of: Callable[[str, int], str]
    ) -> None:
        self.definition = definition
        self.message = message
        self.formats = formats
        self.function_of = function_of  # the function that writes a struct at a version
        self.with_functions = definition.structs_with_functions(message)

    def body(self, struct: Struct, version: int) -> str:
        """The body of a function `(out, struct, inserts) -> None`."""
        self.version = version
        self.flexible = version in self.message.flexible
        self.out = "out"
        self.source = source = Source(self.formats)
        variable = "message" if struct is self.message.top else snake(struct.name)
        source.names.update(("out", "n", "encoded", "inserts", variable))
        self.struct(struct, variable)
        self.flush()
        if not source.lines:
            source.add("pass")
        return source.text()

    # --- runs of fixed width ---

    def give(self, code: str, value: str) -> None:
        self.source.run.append((code, value))

    def flush(self) -> None:
        run, self.source.run = self.source.run, []
        if not run:
            return
        codes = [code for code, _ in run]
        if set(codes) == {"x"}:
            self.source.add(f"{self.out}.append(0)" if len(codes) == 1 else f"{self.out} += bytes({len(codes)})")
            return
        values = ", ".join(value for code, value in run if code != "x")
        self.source.add(f"{self.out} += {self.formats.name(codes)}.pack({values})")

    # --- structs ---

    def struct(self, struct: Struct, variable: str) -> None:
        source = self.source
        missing = [field for field in struct.fields if self.version not in field.versions and not field.ignorable]
        present = [field for field in struct.fields if self.version in field.versions]
        for field in missing:
            with source.block(f"if {not_default(field, f'{variable}.{field.name}')}:"):
                source.add(f'raise absent("{field.name}")')
        for field in present:
            if field.tag is None:
                self.value(field, f"{variable}.{field.name}")
        if self.flexible:
            tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
            self.tagged(tagged, variable)

    def tagged(self, fields: list[Field], variable: str) -> None:
        if not fields:
            self.give("x", "")  # a section of no fields is one zero byte
            return
        self.flush()
        source = self.source
        conditions = [not_default(field, f"{variable}.{field.name}") for field in fields]
        with source.block(f"if {' or '.join(conditions)}:"):
            if len(fields) == 1:
                source.add(f"{self.out}.append(1)")
                self.tagged_value(fields[0], variable, conditions[0])
            else:
                terms = [f"({condition})" if " " in condition else f"bool({condition})" for condition in conditions]
                source.add(f"{self.out}.append({' + '.join(terms)})")
                for field, condition in zip(fields, conditions, strict=True):
                    with source.block(f"if {condition}:"):
                        self.tagged_value(field, variable, condition)
        with source.block("else:"):
            source.add(f"{self.out}.append(0)")

    def tagged_value(self, field: Field, variable: str, condition: str) -> None:
        outer, self.out = self.out, self.source.unique("tagged")
        self.source.add(f"{self.out} = bytearray()")
        self.value(field, f"{variable}.{field.name}", may_be_none=not condition.endswith("is not None"))
        self.flush()
        self.source.add(f"put_tagged_field({outer}, {field.tag}, {self.out})")
        self.out = outer

    def value(self, field: Field, target: str, may_be_none: bool = True) -> None:
        source = self.source
        nullable = self.version in field.nullable
        if not nullable and may_be_none and is_optional(field):
            with source.block(f"if {target} is None:"):
                source.add(f'raise null_in_this_version("{field.name}")')
        if field.is_array:
            self.array(field, target, nullable)
        elif field.type == "uuid":
            with source.block(f"if len({target}) != 16:"):
                source.add(f'raise wrong_uuid("{field.name}")')
            self.give("16s", target)
        elif field.type in CODES:
            self.give(CODES[field.type], target)
        elif field.type == "string":
            self.text(target, nullable)
        elif field.type == "records":
            self.records(target, nullable)
        elif field.type == "bytes":
            self.data(target, nullable)
        else:
            self.inner_struct(field, target, nullable)

    @abstractmethod
    def text(self, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def data(self, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def records(self, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def array(self, field: Field, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def inner_struct(self, field: Field, target: str, nullable: bool) -> None: ...


class CallingWriter(WriterBuilder):
    def call(self, target: str, nullable: bool, function: str, *arguments: str) -> None:
        self.flush()
        variant = "put_" + ("nullable_" if nullable else "") + ("compact_" if self.flexible else "") + function
        self.source.add(f"{', '.join((f'{variant}({self.out}', target, *arguments))})")

    def text(self, target: str, nullable: bool) -> None:
        self.call(target, nullable, "string")

    def data(self, target: str, nullable: bool) -> None:
        self.call(target, nullable, "data")

    def records(self, target: str, nullable: bool) -> None:  # noqa: ARG002
        raise BadSchema(f"{self.definition.name} carries records, so it has to be hot")

    def array(self, field: Field, target: str, nullable: bool) -> None:
        if field.type in NUMBER_ARRAYS:
            self.call(target, nullable, "numbers", f'"{CODES[field.type]}"')
        elif field.type == "string":
            self.call(target, nullable, "strings")
        else:
            self.call(target, nullable, "array", self.function_of(field.type, self.version), "inserts")

    def inner_struct(self, field: Field, target: str, nullable: bool) -> None:
        self.flush()
        function = self.function_of(field.type, self.version)
        if nullable:
            self.source.add(f"put_nullable_struct({self.out}, {target}, {function}, inserts)")
        else:
            self.source.add(f"{function}({self.out}, {target}, inserts)")


class InPlaceWriter(WriterBuilder):
    def text(self, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "h", lambda: self.string(target))

    def string(self, value: str) -> None:
        self.source.add(f"encoded = {value}.encode()")
        self.size("h", "encoded", "put_long_string_size")
        self.source.add(f"{self.out} += encoded")

    def data(self, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "i", lambda: self.copied(target))

    def copied(self, target: str) -> None:
        self.size("i", target, "put_uvarint")
        self.source.add(f"{self.out} += {target}")

    def records(self, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "i", lambda: self.inserted(target))

    def inserted(self, target: str) -> None:
        self.size("i", target, "put_uvarint")
        with self.source.block(f"if {target}:"):
            self.source.add(f"inserts.append((len({self.out}), {target}))")

    def sized(self, target: str, nullable: bool, code: str, then: Callable[[], None]) -> None:
        if not nullable:
            then()
            return
        self.flush()
        with self.source.block(f"if {target} is None:"):
            null = "\\xff\\xff" if code == "h" else "\\xff\\xff\\xff\\xff"
            self.source.add(f"{self.out}.append(0)" if self.flexible else f'{self.out} += b"{null}"')
        with self.source.block("else:"):
            then()
            self.flush()

    def size(self, code: str, of: str, long_form: str) -> None:
        """The length or count of what follows."""
        if not self.flexible:
            self.give(code, f"len({of})")
            self.flush()
            return
        self.flush()
        self.source.add(f"n = len({of}) + 1")
        with self.source.block("if n < 128:"):
            self.source.add(f"{self.out}.append(n)")
        with self.source.block("else:"):
            self.source.add(f"{long_form}({self.out}, n)")

    def array(self, field: Field, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "i", lambda: self.elements(field, target))

    def elements(self, field: Field, target: str) -> None:
        source = self.source
        self.size("i", target, "put_uvarint")
        if field.type in NUMBER_ARRAYS:
            source.add(f'{self.out} += packed_numbers({target}, "{CODES[field.type]}")')
            return
        element = source.unique("element" if field.type == "string" else snake(field.type))
        with source.block(f"for {element} in {target}:"):
            if field.type == "string":
                self.string(element)
            elif field.type in self.with_functions:
                source.add(f"{self.function_of(field.type, self.version)}({self.out}, {element}, inserts)")
            else:
                self.struct(self.definition.structs[field.type], element)
            self.flush()

    def inner_struct(self, field: Field, target: str, nullable: bool) -> None:
        if not nullable:
            self.whole_struct(field, target)
            return
        self.flush()
        with self.source.block(f"if {target} is None:"):
            self.source.add(f"{self.out}.append(255)")
        with self.source.block("else:"):
            self.source.add(f"{self.out}.append(1)")
            self.whole_struct(field, target)
            self.flush()

    def whole_struct(self, field: Field, target: str) -> None:
        if field.type in self.with_functions:
            self.flush()
            self.source.add(f"{self.function_of(field.type, self.version)}({self.out}, {target}, inserts)")
            return
        variable = self.source.unique(snake(field.type))
        self.source.add(f"{variable} = {target}")
        self.struct(self.definition.structs[field.type], variable)
