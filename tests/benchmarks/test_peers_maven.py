"""The resolver, against a repository in memory."""

import hashlib
from pathlib import Path

import pytest

from benchmarks.peers.maven import Artifact, Repository, Unresolved, download


def pom(body: str = "") -> bytes:
    return f'<project xmlns="http://maven.apache.org/POM/4.0.0">{body}</project>'.encode()


def needs(*dependencies: str) -> str:
    return f"<dependencies>{''.join(dependencies)}</dependencies>"


def on(name: str, version: str | None = "1", more: str = "", group: str = "g") -> str:
    told = f"<version>{version}</version>" if version else ""
    return f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>{told}{more}</dependency>"


def repository(**poms: str) -> Repository:
    """Artifacts of group `g`; `name_2` is version 2 of `name`, else it is version 1."""
    files = {}
    for told, body in poms.items():
        name, _, version = told.partition("_")
        files[Artifact("g", name, version or "1").file("pom")] = pom(body)

    def fetch(path: str) -> bytes:
        if path not in files:
            raise Unresolved(path)
        return files[path]

    return Repository(fetch)


def resolved(found: Repository, name: str = "root") -> set[str]:
    return {f"{one.name}:{one.version}" for one in found.resolve([Artifact("g", name, "1")])}


def test_needs_of_needs_are_found() -> None:
    assert resolved(repository(root=needs(on("a")), a=needs(on("b")), b="")) == {"root:1", "a:1", "b:1"}


def test_the_nearest_version_wins_whatever_the_order() -> None:
    found = repository(root=needs(on("a"), on("b", "2")), a=needs(on("b", "1")), b="", b_2="")
    assert resolved(found) == {"root:1", "a:1", "b:2"}


def test_what_is_not_there_at_run_time_is_left_out() -> None:
    scopes = [on(scope, more=f"<scope>{scope}</scope>") for scope in ("test", "provided", "system", "runtime")]
    optional = on("optional", more="<optional>true</optional>")
    native = on("native", more="<classifier>linux</classifier>")
    assert resolved(repository(root=needs(*scopes, optional, native), runtime="")) == {"root:1", "runtime:1"}


@pytest.mark.parametrize(("group", "name"), [("g", "b"), ("g", "*"), ("*", "*")])
def test_exclusions_count_below_the_dependency_that_names_them(group: str, name: str) -> None:
    rule = (
        f"<exclusions><exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion></exclusions>"
    )
    found = repository(root=needs(on("a", more=rule)), a=needs(on("b")), b="")
    assert resolved(found) == {"root:1", "a:1"}


def test_properties_and_versions_come_from_parents_and_bills_of_material() -> None:
    parent = "<properties><v>2</v></properties>"
    bill = f"<dependencyManagement>{needs(on('b', '1'))}</dependencyManagement>"
    imported = on("bill", more="<type>pom</type><scope>import</scope>")
    root = (
        "<parent><groupId>g</groupId><artifactId>parent</artifactId><version>1</version></parent>"
        f"<dependencyManagement>{needs(imported)}</dependencyManagement>" + needs(on("a", "${v}"), on("b", None))
    )
    assert resolved(repository(root=root, parent=parent, bill=bill, a_2="", b="")) == {"root:1", "a:2", "b:1"}


def test_version_ranges_are_an_error() -> None:
    with pytest.raises(Unresolved, match="no single version for g:a"):
        resolved(repository(root=needs(on("a", "[1,2)"))))


def test_the_newest_release_is_a_matter_of_numbers() -> None:
    versions = ["3.9.1", "4.2.0", "4.10.0", "4.11.0-rc1", "4.9.3", "5.0.0"]
    text = f"<metadata>{''.join(f'<version>{version}</version>' for version in versions)}</metadata>"
    found = Repository(lambda _: text.encode())
    assert found.newest("g", "kafka", "4.") == "4.10.0"
    with pytest.raises(Unresolved, match=r"no released version 6\."):
        found.newest("g", "kafka", "6.")


def test_a_jar_that_is_not_what_the_repository_promises_is_refused(tmp_path: Path) -> None:
    artifact = Artifact("g", "a", "1")
    files = {artifact.file("jar"): b"jar", artifact.file("jar.sha1"): hashlib.sha1(b"jar").hexdigest().encode()}
    (path,) = download([artifact], str(tmp_path / "good"), files.__getitem__)
    assert Path(path).read_bytes() == b"jar"
    files[artifact.file("jar")] = b"tampered"
    with pytest.raises(Unresolved, match="SHA-1"):
        download([artifact], str(tmp_path / "bad"), files.__getitem__)
    assert not list((tmp_path / "bad").iterdir())
