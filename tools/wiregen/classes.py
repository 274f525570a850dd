"""A struct as a class: slots, and a constructor whose defaults are the protocol's."""

from tools.wiregen.schema import Field, Struct, Versions

_PYTHON_TYPES = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "Buffer",
}
_TYPE_DEFAULTS = {"bool": "False", "float64": "0.0", "uuid": "NO_UUID", "string": '""', "bytes": 'b""'}


def is_optional(field: Field) -> bool:
    """True if the field may be None: the protocol's null, or a tagged struct at its default, which is not sent."""
    return not field.nullable.empty or (field.tag is not None and field.is_struct and not field.is_array)


def python_type(field: Field, role: str) -> str:
    if field.type == "records":
        plain = "Records" if role == "response" else "Buffer"
    else:
        plain = _PYTHON_TYPES.get(field.type, field.type)
    if field.is_array:
        plain = f"list[{plain}]"
    return f"{plain} | None" if is_optional(field) else plain


def default_value(field: Field) -> str:
    """The default as an expression that creates a new value each time."""
    if field.default == "null":
        return "None"
    if field.is_array:
        return "[]"
    if field.is_struct:
        return "None" if is_optional(field) else f"{field.type}()"
    if field.type == "records":
        return "None" if is_optional(field) else 'b""'
    if field.default:
        return field.default.capitalize() if field.type == "bool" else field.default
    return _TYPE_DEFAULTS.get(field.type, "0")


def not_default(field: Field, value: str) -> str:
    """The condition, as Python code, that a value is not the default."""
    default = default_value(field)
    if default == "None":
        return f"{value} is not None"
    if default == "[]" and is_optional(field):
        return f"{value} != []"
    if default in ("[]", "0", "False", '""', 'b""', "0.0"):
        return value
    if default == "True":
        return f"not {value}"
    return f"{value} != {default}"


def class_lines(struct: Struct, role: str, bounds: Versions) -> list[str]:
    lines = [f"class {struct.name}(Struct):"]
    slots = "".join(f'"{field.name}", ' for field in struct.fields)
    lines += [f"    __slots__ = ({slots})", ""]
    if not struct.fields:
        return lines
    lines += ["    def __init__(", "        self,"]
    assignments = []
    for field in struct.fields:
        annotation, default = python_type(field, role), default_value(field)
        assigned = field.name
        if default == "[]":
            default, assigned = "EMPTY", f"[] if {field.name} is EMPTY else {field.name}"
        elif default.endswith("()"):
            assigned = f"{default} if {field.name} is None else {field.name}"
            annotation, default = f"{annotation} | None", "None"
        comment = "" if field.versions == bounds else f"  # {field.versions.text(bounds)}"
        lines.append(f"        {field.name}: {annotation} = {default},{comment}")
        assignments.append(f"        self.{field.name} = {assigned}")
    return [*lines, "    ) -> None:", *assignments, ""]
