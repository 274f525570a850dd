"""Folders of tables and checkpoints in any file system, through the session's Hadoop.

A place is a string such as `file:/home/me/my shop`, in the form that SQL takes, without the escapes of a URI.
"""

from typing import Any


def place_of(jvm: Any, uri: Any) -> str:  # noqa: ANN401  (a java.net.URI)
    return str(jvm.org.apache.hadoop.fs.Path(uri).toString())


class Places:
    def __init__(self, spark: Any) -> None:  # noqa: ANN401  (a session with a JVM of this process)
        self._jvm = spark._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def exists(self, place: str) -> bool:
        path, files = self._at(place)
        return bool(files.exists(path))

    def names_in(self, folder: str) -> list[str]:
        """Empty if the folder does not exist."""
        path, files = self._at(folder)
        if not files.exists(path):
            return []
        return [status.getPath().getName() for status in files.listStatus(path)]

    def mention(self, folder: str, text: str) -> bool:
        """Whether a file in this folder contains the text. For small files only, such as Spark's logs of sources."""
        for name in self.names_in(folder):
            path, files = self._at(f"{folder}/{name}")
            stream = files.open(path)
            try:
                if text in self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"):
                    return True
            finally:
                stream.close()
        return False

    def delete(self, folder: str) -> None:
        path, files = self._at(folder)
        files.delete(path, True)

    def _at(self, place: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(place)
        return path, path.getFileSystem(self._conf)
