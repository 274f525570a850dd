"""The real file system, as far as other tests do not see to it."""

import pytest

from tidelog.storage.local.files import kernel_version


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("6.8.0-31-generic", (6, 8)),
        ("5.10.102.1-microsoft-standard-WSL2", (5, 10)),
        ("6.8+", (6, 8)),
        ("6.12-rc3", (6, 12)),
        ("4.19", (4, 19)),
        ("7", (7, 0)),
        ("7-rc1", (7, 0)),
        ("", (0, 0)),
        ("custom", (0, 0)),
    ],
)
def test_the_version_of_any_kernel_can_be_told(release: str, version: tuple[int, int]) -> None:
    assert kernel_version(release) == version
