"""Turns Kafka's message definitions (one JSON object per message) into our compact form.

    python -m tools.wiregen.import_facts DIRECTORY_OF_JSON [NAME ...]

Needed only when a newer Kafka adds versions or fields, or when Tidelog begins to use another message; in that case
give its name (`ShareFetch`). Other messages without a file in `messages/` are skipped, because nothing uses them. The
JSON is not part of this repository.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tools.wiregen.schema import MESSAGES, Versions

Json = dict[str, Any]


def snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def struct_names(message: Json) -> list[str]:
    found: list[str] = []

    def walk(fields: list[Json]) -> None:
        for field in fields:
            if "fields" in field:
                found.append(field["type"].removeprefix("[]"))
                walk(field["fields"])

    walk(message["fields"])
    for struct in message.get("commonStructs", []):
        found.append(struct["name"])
        walk(struct["fields"])
    return found


def default_text(field: Json) -> str:
    """The default as the compact form has it; empty if it is the default of the type."""
    if "default" not in field:
        return ""
    kind, text = field["type"], str(field["default"]).lower()
    if kind == "string" and text != "null":
        text = f'"{field["default"]}"'
    elif kind.startswith(("int", "uint")):
        text = str(int(text, 0))
    return "" if text in ("0", "false", '""') else text


def field_lines(fields: list[Json], valid: Versions, rename: dict[str, str], depth: int) -> list[str]:
    lines: list[str] = []
    for field in fields:
        versions = Versions.parse(field["versions"]).clip(valid)
        if versions.empty:
            continue
        nullable = Versions.parse(field.get("nullableVersions", "none")).clip(versions)
        array, base = ("[]", field["type"][2:]) if field["type"].startswith("[]") else ("", field["type"])
        kind = array + rename.get(base, base)
        qualifiers = []
        if nullable == versions:
            kind += "?"
        if versions != valid:
            qualifiers.append(versions.text(valid))
        if not nullable.empty and nullable != versions:
            qualifiers.append("nullable " + nullable.text(valid))
        if "tag" in field:
            if Versions.parse(field["taggedVersions"]).clip(valid) != versions:
                raise ValueError(
                    f"{field['name']} is tagged in some versions only: the compact form cannot express that"
                )
            qualifiers.append(f"tag {field['tag']}")
        if field.get("ignorable"):
            qualifiers.append("ignorable")
        text = default_text(field)
        if text:
            qualifiers.append(f"= {text}")
        lines.append("  " * depth + ", ".join([f"{snake(field['name'])}: {kind}", *qualifiers]))
        if "fields" in field:
            lines += field_lines(field["fields"], versions, rename, depth + 1)
    return lines


def struct_lines(message: Json, valid: Versions, rename: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for struct in message.get("commonStructs", []):
        name = rename.get(struct["name"], struct["name"])
        lines += ["", f"struct {name}", *field_lines(struct["fields"], valid, rename, 1)]
    return lines


def opening(first: str, message: Json) -> list[str]:
    flexible = Versions.parse(message["flexibleVersions"])
    from_version = "none" if flexible.empty else f"{flexible.low}+"
    return [first, f"versions {message['validVersions']}", f"flexible {from_version}"]


def api_text(request: Json, response: Json) -> str:
    facts = ("apiKey", "validVersions", "flexibleVersions")
    if [request[fact] for fact in facts] != [response[fact] for fact in facts]:
        raise ValueError(f"{request['name']} and its response differ in their versions")
    name = request["name"].removesuffix("Request")
    valid = Versions.parse(request["validVersions"])
    # One module holds request and response, so a name that is used in both gets a prefix.
    shared = set(struct_names(request)) & set(struct_names(response))
    lines = opening(f"api {request['apiKey']} {name}", request)
    structs: list[str] = []
    for direction, message in (("Request", request), ("Response", response)):
        rename = {struct: direction + struct for struct in shared}
        lines += ["", direction.lower(), *field_lines(message["fields"], valid, rename, 1)]
        structs += struct_lines(message, valid, rename)
    return "\n".join(lines + structs) + "\n"


def data_text(message: Json) -> str:
    valid = Versions.parse(message["validVersions"])
    lines = opening(f"data {message['name']}", message)
    lines += ["", "fields", *field_lines(message["fields"], valid, {}, 1), *struct_lines(message, valid, {})]
    return "\n".join(lines) + "\n"


def main(directory: str, *added: str) -> None:
    facts = [json.loads(path.read_text()) for path in sorted(Path(directory).glob("*.json"))]
    responses = {message["apiKey"]: message for message in facts if message["type"] == "response"}
    for message in facts:
        if message["type"] == "request":
            name, text = message["name"].removesuffix("Request"), api_text(message, responses[message["apiKey"]])
        elif message["type"] == "data":
            name, text = message["name"], data_text(message)
        else:
            continue  # responses are handled with their requests; the headers are written by hand in `wire.envelope`
        path = MESSAGES / f"{snake(name)}.txt"
        if not path.exists() and name not in added:
            continue
        if path.exists() and "\nhot\n" in path.read_text():  # our choice, not one of Kafka's facts
            text = text.replace("\n\n", "\nhot\n\n", 1)
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
