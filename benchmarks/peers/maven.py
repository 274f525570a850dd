"""A small resolver for Maven Central: the jars that one artifact needs at run time.

It follows Maven's rules: breadth first; the nearest version of an artifact wins, and of equally near ones the first;
parents and imported bills of material are followed; optional, test, provided and system dependencies are left out;
exclusions apply to everything below the dependency that names them. Version ranges are an error.
"""

import hashlib
import os
import re
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree import ElementTree

CENTRAL = "https://repo1.maven.org/maven2"
_PROPERTY = re.compile(r"\$\{([^}]+)\}")
_RELEASE = re.compile(r"\d+(\.\d+)*")


class Unresolved(Exception):
    """The repository does not have a file, or a pom uses a feature that is not supported here."""


class Artifact(NamedTuple):
    group: str
    name: str
    version: str

    @property
    def folder(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}"

    def file(self, kind: str) -> str:
        return f"{self.folder}/{self.name}-{self.version}.{kind}"


@dataclass(frozen=True)
class Dependency:
    group: str
    name: str
    version: str | None
    scope: str | None
    kind: str
    classifier: str
    optional: bool
    exclusions: frozenset[tuple[str, str]]

    @property
    def is_needed(self) -> bool:
        return self.kind == "jar" and not self.classifier and not self.optional and self.scope in _RUN_TIME


_RUN_TIME = (None, "compile", "runtime")


@dataclass
class Pom:
    properties: dict[str, str] = field(default_factory=dict)
    managed: dict[tuple[str, str], Dependency] = field(default_factory=dict)
    dependencies: list[Dependency] = field(default_factory=list)


class Repository:
    """Reads poms through `fetch` (a path in the repository to its bytes), each one once."""

    def __init__(self, fetch: Callable[[str], bytes]) -> None:
        self._fetch = fetch
        self._poms: dict[Artifact, Pom] = {}

    def newest(self, group: str, name: str, prefix: str) -> str:
        """The highest released version that begins with `prefix`."""
        text = self._fetch(f"{group.replace('.', '/')}/{name}/maven-metadata.xml")
        versions = [element.text or "" for element in ElementTree.fromstring(text).iter("version")]
        fitting = [text for text in versions if _RELEASE.fullmatch(text) and text.startswith(prefix)]
        if not fitting:
            raise Unresolved(f"{group}:{name} has no released version {prefix}*")
        return max(fitting, key=lambda text: [int(part) for part in text.split(".")])

    def resolve(self, roots: Iterable[Artifact]) -> list[Artifact]:
        """The roots and all their dependencies, one version of each."""
        found: dict[tuple[str, str], Artifact] = {}
        waiting: deque[tuple[Artifact, frozenset[tuple[str, str]]]] = deque((root, frozenset()) for root in roots)
        first: Pom | None = None
        while waiting:
            artifact, excluded = waiting.popleft()
            if (artifact.group, artifact.name) in found:
                continue
            found[artifact.group, artifact.name] = artifact
            pom = self._pom(artifact)
            first = first or pom
            for dependency in pom.dependencies:
                rule = first.managed.get((dependency.group, dependency.name))
                if not dependency.is_needed or _is_excluded(dependency, excluded):
                    continue
                version = (rule.version if rule else None) or dependency.version
                if version is None or version[:1] in "[(":
                    raise Unresolved(f"{artifact}: no single version for {dependency.group}:{dependency.name}")
                below = excluded | dependency.exclusions
                waiting.append((Artifact(dependency.group, dependency.name, version), below))
        return list(found.values())

    def _pom(self, artifact: Artifact) -> Pom:
        if artifact not in self._poms:
            self._poms[artifact] = self._read(artifact)
        return self._poms[artifact]

    def _read(self, artifact: Artifact) -> Pom:
        root = ElementTree.fromstring(self._fetch(artifact.file("pom")))
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        pom = Pom()
        parent = root.find("parent")
        if parent is not None:
            above = self._pom(Artifact(*(_text(parent, tag) for tag in ("groupId", "artifactId", "version"))))
            pom = Pom(dict(above.properties), dict(above.managed), list(above.dependencies))
        for element in root.find("properties") or ():
            pom.properties[element.tag] = (element.text or "").strip()
        for name, value in zip(("groupId", "artifactId", "version"), artifact, strict=True):
            pom.properties[f"project.{name}"] = pom.properties[f"pom.{name}"] = value
        for element in root.findall("dependencyManagement/dependencies/dependency"):
            dependency = _dependency(element, pom)
            if dependency.scope == "import":
                bill = self._pom(Artifact(dependency.group, dependency.name, dependency.version or ""))
                pom.managed = {**bill.managed, **pom.managed}
            else:
                pom.managed[dependency.group, dependency.name] = dependency
        pom.dependencies += [_dependency(element, pom) for element in root.findall("dependencies/dependency")]
        pom.dependencies = [_managed(dependency, pom.managed) for dependency in pom.dependencies]
        return pom


def _is_excluded(dependency: Dependency, excluded: frozenset[tuple[str, str]]) -> bool:
    group, name = dependency.group, dependency.name
    return not excluded.isdisjoint({(group, name), (group, "*"), ("*", name), ("*", "*")})


def _managed(dependency: Dependency, managed: dict[tuple[str, str], Dependency]) -> Dependency:
    """Complete the dependency with the bill of material's version, scope and exclusions."""
    rule = managed.get((dependency.group, dependency.name))
    if rule is None:
        return dependency
    return Dependency(
        dependency.group,
        dependency.name,
        dependency.version or rule.version,
        dependency.scope or rule.scope,
        dependency.kind,
        dependency.classifier,
        dependency.optional,
        dependency.exclusions | rule.exclusions,
    )


def _dependency(element: ElementTree.Element, pom: Pom) -> Dependency:
    def text(tag: str) -> str | None:
        found = element.findtext(tag)
        return _filled(found.strip(), pom.properties) if found else None

    return Dependency(
        text("groupId") or "",
        text("artifactId") or "",
        text("version"),
        text("scope"),
        text("type") or "jar",
        text("classifier") or "",
        text("optional") == "true",
        frozenset(
            (_text(exclusion, "groupId"), _text(exclusion, "artifactId"))
            for exclusion in element.findall("exclusions/exclusion")
        ),
    )


def _filled(text: str, properties: dict[str, str]) -> str:
    for _ in range(10):  # a property may name another one
        if "${" not in text:
            break
        text = _PROPERTY.sub(lambda match: properties.get(match[1], match[0]), text)
    return text


def _text(element: ElementTree.Element, tag: str) -> str:
    return (element.findtext(tag) or "*").strip()


def from_central(path: str) -> bytes:
    with urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=60) as reply:
        data: bytes = reply.read()
        return data


def download(
    artifacts: Iterable[Artifact], directory: str, fetch: Callable[[str], bytes] = from_central
) -> list[str]:
    """Download the jars to `directory`, each checked against the repository's SHA-1; existing files are kept."""
    os.makedirs(directory, exist_ok=True)

    def one(artifact: Artifact) -> str:
        target = f"{directory}/{artifact.name}-{artifact.version}.jar"
        if not os.path.exists(target):
            data = fetch(artifact.file("jar"))
            promised = fetch(artifact.file("jar.sha1")).decode().split()[0]
            if hashlib.sha1(data, usedforsecurity=False).hexdigest() != promised:
                raise Unresolved(f"{artifact.file('jar')} does not match the repository's SHA-1")
            with open(target + ".part", "wb") as file:
                file.write(data)
            os.replace(target + ".part", target)
        return target

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, artifacts))
