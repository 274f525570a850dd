"""The code that reads a struct at one version, in one of two styles.

`CallingReader`, the common style, makes small code: it calls a function of `tidelog.wire.reading` for each field of
variable width, and a generated function for each struct. `InPlaceReader` is for the hot APIs: straight-line code
without calls, which reads a run of fixed-width fields and the length or count after it with one `unpack_from`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from tools.wiregen.classes import default_value
from tools.wiregen.schema import Definition, Field, Message, Struct
from tools.wiregen.source import CODES, SIZES, Formats, Source, snake

NUMBER_ARRAYS = ("int8", "int16", "int32", "int64")


def carries_bytes(definition: Definition, message: Message) -> bool:
    """Whether values of the message are views of the buffer. If not, reading from a copy in `bytes` is faster."""
    structs = [message.top, *(definition.structs[name] for name in definition.structs_of(message))]
    return any(field.type in ("bytes", "records") for struct in structs for field in struct.fields)


class ReaderBuilder(ABC):
    def __init__(
        self, definition: Definition, message: Message, formats: Formats, function_of: Callable[[str, int], str]
    ) -> None:
        self.definition = definition
        self.message = message
        self.formats = formats
        self.function_of = function_of  # the function that reads a struct at a version
        self.with_functions = definition.structs_with_functions(message)
        self.buffer_type = "memoryview" if carries_bytes(definition, message) else "bytes"

    def body(self, struct: Struct, version: int) -> str:
        """The body of a function `(buf, pos) -> (struct, pos)`."""
        self.version = version
        self.flexible = version in self.message.flexible
        self.source = source = Source(self.formats)
        variable = "message" if struct is self.message.top else snake(struct.name)
        source.names.update(("buf", "pos", "n", "end", "tag", "size", variable))
        self.struct(struct, variable)
        source.add(f"return {variable}, pos")
        if any("size - pos" in line for line in source.lines):
            source.lines.insert(0, "    size = len(buf)")
        return source.text()

    # --- runs of fixed width ---

    def take(self, code: str, target: str) -> None:
        self.source.run.append((code, target))

    def flush(self) -> None:
        run, self.source.run = self.source.run, []
        if not run:
            return
        codes = [code for code, _ in run]
        if codes == ["B"]:
            self.source.add(f"{run[0][1]} = buf[pos]")
        else:
            targets = ", ".join(target for _, target in run)
            left = targets if len(run) > 1 else f"({targets},)"
            self.source.add(f"{left} = {self.formats.name(codes)}.unpack_from(buf, pos)")
        self.source.add(f"pos += {sum(SIZES[code] for code in codes)}")

    # --- structs ---

    def struct(self, struct: Struct, variable: str) -> None:
        source = self.source
        source.add(f"{variable} = new({struct.name})")
        for field in struct.fields:
            if self.version not in field.versions or field.tag is not None:
                source.add(f"{variable}.{field.name} = {default_value(field)}")
        for field in struct.fields:
            if self.version in field.versions and field.tag is None:
                self.value(field, f"{variable}.{field.name}")
        self.flush()
        if self.flexible:
            self.tagged([f for f in struct.fields if self.version in f.versions and f.tag is not None], variable)

    def tagged(self, known: list[Field], variable: str) -> None:
        source = self.source
        if not known:
            self.skip_tagged()
            return
        stop, tags = source.unique("stop"), source.unique("tags")
        with source.block("if buf[pos] == 0:"):
            source.add("pos += 1")
        with source.block("else:"):
            source.add(f"{tags}, pos = tag_count(buf, pos)")
            with source.block(f"for _ in range({tags}):"):
                source.add(f"tag, pos, {stop} = tagged_field(buf, pos)")
                for number, field in enumerate(known):
                    with source.block(f"{'el' if number else ''}if tag == {field.tag}:"):
                        self.value(field, f"{variable}.{field.name}")
                        self.flush()
                with source.block("else:"):
                    source.add(f"pos = {stop}")
                with source.block(f"if pos != {stop}:"):
                    source.add("raise wrong_tagged_size(tag)")

    def value(self, field: Field, target: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            self.array(field, target, nullable)
        elif field.type in CODES:
            self.take(CODES[field.type], target)
        elif field.type == "string":
            self.text(target, nullable)
        elif field.type in ("bytes", "records"):
            self.data(target, nullable)
        else:
            self.inner_struct(field, target, nullable)

    @abstractmethod
    def skip_tagged(self) -> None: ...

    @abstractmethod
    def text(self, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def data(self, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def array(self, field: Field, target: str, nullable: bool) -> None: ...

    @abstractmethod
    def inner_struct(self, field: Field, target: str, nullable: bool) -> None: ...

    # --- the least number of bytes of a value; claimed counts are checked against it ---

    def smallest_element(self, field: Field) -> int:
        if field.is_struct:
            return self._smallest_struct(self.definition.structs[field.type])
        return self._smallest_plain(field)

    # --- the least cost of an element: itself, and one for each array in it, as arrays of one do not `spend` ---

    def cost(self, field: Field) -> int:
        """0 in responses: they have no budget, since we requested them."""
        return 0 if self.message.role == "response" else self._cost(field)

    def _cost(self, field: Field) -> int:
        if not field.is_struct:
            return 1
        present = [inner for inner in self.definition.structs[field.type].fields if self.version in inner.versions]
        inside = sum(self._cost(inner) for inner in present if inner.is_array or inner.is_struct)
        return inside + (1 if field.is_array else 0)

    def _smallest_struct(self, struct: Struct) -> int:
        present = [field for field in struct.fields if self.version in field.versions and field.tag is None]
        return sum(self._smallest_value(field) for field in present) + (1 if self.flexible else 0)

    def _smallest_value(self, field: Field) -> int:
        if field.is_array:
            return 1 if self.flexible else 4
        if field.is_struct:
            return 1 if self.version in field.nullable else self._smallest_struct(self.definition.structs[field.type])
        return self._smallest_plain(field)

    def _smallest_plain(self, field: Field) -> int:
        if field.type in CODES:
            return SIZES[CODES[field.type]]
        if self.flexible:
            return 1
        return 2 if field.type == "string" else 4


class CallingReader(ReaderBuilder):
    def call(self, target: str, nullable: bool, function: str, *arguments: str) -> None:
        self.flush()
        variant = ("nullable_" if nullable else "") + ("compact_" if self.flexible else "") + function
        self.source.add(f"{target}, pos = {', '.join((f'{variant}(buf', 'pos', *arguments))})")

    def skip_tagged(self) -> None:
        self.source.add("pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1")

    def text(self, target: str, nullable: bool) -> None:
        self.call(target, nullable, "string")

    def data(self, target: str, nullable: bool) -> None:
        self.call(target, nullable, "data")

    def array(self, field: Field, target: str, nullable: bool) -> None:
        if field.type in NUMBER_ARRAYS:
            self.call(target, nullable, "numbers", f'"{CODES[field.type]}"')
            return
        if field.type == "string":
            element = "compact_string" if self.flexible else "string"
        else:
            element = self.function_of(field.type, self.version)
        cost = self.cost(field)
        self.call(
            target, nullable, "array", element, str(self.smallest_element(field)), *([str(cost)] if cost else [])
        )

    def inner_struct(self, field: Field, target: str, nullable: bool) -> None:
        self.flush()
        function = self.function_of(field.type, self.version)
        call = f"nullable_struct(buf, pos, {function})" if nullable else f"{function}(buf, pos)"
        self.source.add(f"{target}, pos = {call}")


class InPlaceReader(ReaderBuilder):
    def skip_tagged(self) -> None:
        with self.source.block("if buf[pos]:"):
            self.source.add("pos = skip_tagged_fields(buf, pos)")
        with self.source.block("else:"):
            self.source.add("pos += 1")

    def text(self, target: str, nullable: bool) -> None:
        decoded = "buf[pos:end].decode()" if self.buffer_type == "bytes" else "buf[pos:end].tobytes().decode()"
        self.sized(target, nullable, "h", "long_string_size", lambda: self.slice(f"{target} = {decoded}"))

    def data(self, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "i", "long_size", lambda: self.slice(f"{target} = buf[pos:end]"))

    def slice(self, line: str) -> None:
        self.source.add("end = pos + n - 1" if self.flexible else "end = pos + n")
        self.source.add(line)
        self.source.add("pos = end")

    def sized(self, target: str, nullable: bool, code: str, long_form: str, then: Callable[[], None]) -> None:
        """A value after a length or a count, which is read into `n` (plus one if the version is flexible)."""
        source = self.source
        self.take("B" if self.flexible else code, "n")
        self.flush()
        if not nullable:
            with source.block("if not 0 < n < 128:" if self.flexible else "if n < 0:"):
                if self.flexible:
                    source.add(f"n, pos = {long_form}(buf, pos, n)")
                else:
                    source.add(f'raise null_refused("{target.rpartition(".")[2]}")')
            then()
            return
        with source.block("if n == 0:" if self.flexible else "if n < 0:"):
            source.add(f"{target} = None")
        with source.block("else:"):
            if self.flexible:
                with source.block("if n > 127:"):
                    source.add(f"n, pos = {long_form}(buf, pos, n)")
            then()

    def array(self, field: Field, target: str, nullable: bool) -> None:
        self.sized(target, nullable, "i", "long_size", lambda: self.elements(field, target))

    def elements(self, field: Field, target: str) -> None:
        source = self.source
        count = "n - 1" if self.flexible else "n"
        if field.type in NUMBER_ARRAYS:
            source.add(f'{target}, pos = some_numbers(buf, pos, {count}, "{CODES[field.type]}")')
            return
        smallest = self.smallest_element(field)
        claimed = count if smallest == 1 else f"({count}) * {smallest}" if self.flexible else f"n * {smallest}"
        with source.block(f"if {claimed} > size - pos:"):
            source.add(f"raise too_many({count})")
        cost = self.cost(field)
        if cost:
            with source.block("if n > 2:" if self.flexible else "if n > 1:"):
                each = "" if cost == 1 else f" * {cost}"
                source.add(f"spend(({count}){each})" if self.flexible and each else f"spend({count}{each})")
        variable = source.unique(field.name)
        source.add(f"{variable}: list[{'str' if field.type == 'string' else field.type}] = []")
        if field.is_struct and self.is_fixed(self.definition.structs[field.type]):
            self.fixed_elements(self.definition.structs[field.type], variable, smallest)
            source.add(f"{target} = {variable}")
            return
        with source.block("for _ in range(1, n):" if self.flexible else "for _ in range(n):"):
            if field.type == "string":
                element = source.unique("element")
                self.text(element, nullable=False)
            elif field.type in self.with_functions:
                element = source.unique(snake(field.type))
                source.add(f"{element}, pos = {self.function_of(field.type, self.version)}(buf, pos)")
            else:
                element = source.unique(snake(field.type))
                self.struct(self.definition.structs[field.type], element)
            source.add(f"{variable}.append({element})")
        source.add(f"{target} = {variable}")

    def is_fixed(self, struct: Struct) -> bool:
        """Whether all elements of this struct have the same size if they have no tagged fields."""
        present = [field for field in struct.fields if self.version in field.versions and field.tag is None]
        return all(field.type in CODES and not field.is_array for field in present)

    def fixed_elements(self, struct: Struct, variable: str, width: int) -> None:
        """Elements of fixed width are read with one `iter_unpack`, provided that none has tagged fields."""
        source, element = self.source, self.source.unique(snake(struct.name))
        source.add(f"end = pos + {'(n - 1)' if self.flexible else 'n'} * {width}")
        if not self.flexible:
            self.unpacked_elements(struct, variable, element)
            return
        # If each last byte is the zero of an empty section of tagged fields, all elements have the same width.
        to_bytes = "" if self.buffer_type == "bytes" else ".tobytes()"
        with source.block(f"if buf[pos + {width - 1} : end : {width}]{to_bytes}.count(0) == n - 1:"):
            self.unpacked_elements(struct, variable, element)
        with source.block("else:"), source.block("for _ in range(1, n):"):
            source.add(f"{element}, pos = {self.function_of(struct.name, self.version)}(buf, pos)")
            source.add(f"{variable}.append({element})")

    def unpacked_elements(self, struct: Struct, variable: str, element: str) -> None:
        source = self.source
        present = [field for field in struct.fields if self.version in field.versions and field.tag is None]
        codes = [CODES[field.type] for field in present] + (["x"] if self.flexible else [])
        values = [source.unique(field.name) for field in present]
        left = ", ".join(values) + ("," if len(values) == 1 else "")
        with source.block(f"for {left} in {self.formats.name(codes)}.iter_unpack(buf[pos:end]):"):
            source.add(f"{element} = new({struct.name})")
            for field in struct.fields:
                value = values[present.index(field)] if field in present else default_value(field)
                source.add(f"{element}.{field.name} = {value}")
            source.add(f"{variable}.append({element})")
        source.add("pos = end")

    def inner_struct(self, field: Field, target: str, nullable: bool) -> None:
        if not nullable:
            self.flush()
            self.whole_struct(field, target)
            return
        self.take("b", "n")
        self.flush()
        with self.source.block("if n < 0:"):
            self.source.add(f"{target} = None")
        with self.source.block("else:"):
            self.whole_struct(field, target)

    def whole_struct(self, field: Field, target: str) -> None:
        if field.type in self.with_functions:
            self.source.add(f"{target}, pos = {self.function_of(field.type, self.version)}(buf, pos)")
            return
        variable = self.source.unique(snake(field.type))
        self.struct(self.definition.structs[field.type], variable)
        self.source.add(f"{target} = {variable}")
