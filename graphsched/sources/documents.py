"""From paths to documents: which files there are, and what each of them holds.

Paths come in as a user gives them (files, folders, `-`), documents go out as plain mappings and lists with the place
they came from; `manifests` reads meaning into them. A file is refused by its size before it is read and by its first
block before it is parsed, so garbage of any size costs nothing.

Invariant: every failure is an `InputError` whose place begins with the path as the user gave it.
"""

from __future__ import annotations

import codecs
import json
import pathlib
import re
import stat
import sys
import typing
from collections import Counter
from collections.abc import Iterator, Sequence

from graphsched.base.values import errors
from graphsched.graph import wire
from graphsched.sources import yamls

STDIN = "-"
BYTES_MAX = 256 << 20
"""Of one file. 100,000 plain pods, as the API server sends them, are about 240 MB of JSON without indentation."""
_YAML_SUFFIXES = (".yaml", ".yml")
_SUFFIXES = (*_YAML_SUFFIXES, ".json")
_BLOCK = 8192
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""UTF-32 first: its little-endian mark begins with that of UTF-16."""
_SPACE = re.compile(r"(?:[ \t\r\n]|^---(?=[ \t\r\n]|\Z))*", re.MULTILINE)
"""Between JSON values; YAML's line between documents may stand there, since JSON is YAML as well."""
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
_TEXT_HELP = "give manifests in YAML or JSON"


class Document(typing.NamedTuple):
    """One document. `file` is the path as given, `place` adds the line where that is known."""

    file: str
    place: str
    body: object


def read(paths: Sequence[str], *, stdin: typing.BinaryIO | None = None) -> Iterator[Document]:
    """All documents under these paths, folders in the order of their names.

    `-` is `stdin`, the process's own where none is given. In folders only .yaml, .yml and .json count.

    Raises:
        InputError: See the module.
    """
    for path in paths:
        if not path:
            # The library takes it for the current folder, and the user meant a variable that happens to be empty.
            raise errors.InputError(problem="a path is empty", remedy="name a file, a folder, or - for standard input")
        if path == STDIN:
            yield from parse(_read_bounded(stdin or sys.stdin.buffer, "stdin"), "stdin")
        elif pathlib.Path(path).is_dir():
            found = list(_walk(pathlib.Path(path), ()))
            if not found:
                raise errors.InputError(
                    path, problem="holds no manifests", remedy="it needs .yaml, .yml or .json files"
                )
            for file in found:
                yield from parse(_read_file(file), str(file))
        else:
            yield from parse(_read_file(pathlib.Path(path)), path)


def _walk(folder: pathlib.Path, above: tuple[tuple[int, int], ...]) -> Iterator[pathlib.Path]:
    """The manifest files in a folder and below, symbolic links followed."""
    try:
        status = folder.stat()
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from error
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        problem = "leads back to a folder it lies in"
        raise errors.InputError(str(folder), problem=problem, remedy="remove the symbolic link")
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _walk(entry, (*above, identity))
        elif entry.suffix in _SUFFIXES:
            yield entry


def _read_file(path: pathlib.Path) -> bytes:
    try:
        with _open(path, BYTES_MAX) as file:
            return _read_bounded(file, str(path))
    except OSError as error:
        raise _unreadable(path, error) from error


def _open(path: pathlib.Path, bytes_max: int) -> typing.BinaryIO:
    """Open the file unless its size alone refuses it."""
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_size > bytes_max:
        raise _too_big(str(path), status.st_size, bytes_max)
    return path.open("rb")


def bytes_of(path: str, *, bytes_max: int) -> bytes:
    """The bytes of one file, whatever they are.

    Raises:
        InputError: The file can not be read, or holds more than `bytes_max`.
    """
    try:
        with _open(pathlib.Path(path), bytes_max) as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise _unreadable(pathlib.Path(path), error) from error
    if len(data) > bytes_max:
        raise _too_big(path, len(data), bytes_max)
    return data


def first_bytes(path: str, count: int) -> bytes:
    """The first bytes of one file; empty for a folder, and for what is not there.

    Raises:
        InputError: The file can not be read.
    """
    try:
        if not pathlib.Path(path).is_file():
            return b""
        with pathlib.Path(path).open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise _unreadable(pathlib.Path(path), error) from error


def _read_bounded(file: typing.BinaryIO, place: str) -> bytes:
    """The bytes of a file of unknown length; its first block is looked at before the rest is read."""
    head = file.read(_BLOCK)
    for mark, name in _MARKS:
        if head.startswith(mark):
            raise errors.InputError(place, problem=f"is {name}, not UTF-8", remedy="save it as UTF-8")
    if head.startswith(_COMPRESSED):
        raise errors.InputError(place, problem="is compressed", remedy="unpack it first")
    if head.startswith(wire.IDENTIFIER):
        problem = "is a captured graph, read by its name alone"
        raise errors.InputError(place, problem=problem, remedy="name the file itself, not its folder or standard input")
    if b"\0" in head:
        raise errors.InputError(place, problem="is binary, not text", remedy=_TEXT_HELP)
    data = head + file.read(BYTES_MAX + 1 - len(head))
    if len(data) > BYTES_MAX:
        raise _too_big(place, len(data), BYTES_MAX)
    return data


def text_of(path: str) -> str:
    """The text of one file, under the same bounds as a manifest.

    Raises:
        InputError: The file can not be read, is too big, or is no text in UTF-8.
    """
    return _decode(_read_file(pathlib.Path(path)), path)


def first_line(path: str) -> str:
    """The first line of a file, cut at one block; what is no UTF-8 in it is replaced. Empty for a folder.

    Raises:
        InputError: The file can not be read.
    """
    try:
        if pathlib.Path(path).is_dir():
            return ""
        with pathlib.Path(path).open("rb") as file:
            return file.read(_BLOCK).split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise _unreadable(pathlib.Path(path), error) from error


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise errors.InputError(f"{file}:{line}", problem=problem, remedy="save it as UTF-8") from error


def parse(data: bytes, file: str) -> Iterator[Document]:
    """The documents in the bytes of a file, at least one.

    Raises:
        InputError: They are no UTF-8, no YAML and no JSON, or hold no document.
    """
    text = _decode(data, file)
    empty = True
    for document in _documents(text, file):
        empty = False
        yield document
    if empty:
        raise errors.InputError(file, problem="is empty", remedy=_TEXT_HELP)


def _documents(text: str, file: str) -> Iterator[Document]:
    if not _is_json(text, file):
        return _yaml(text, file)
    if not file.endswith(_YAML_SUFFIXES):
        return _json(text, file)
    try:
        return iter(list(_json(text, file)))
    except errors.InputError:
        # A mapping in flow style may begin like JSON and go on as YAML, which also says best what is wrong with it.
        return _yaml(text, file)


def _is_json(text: str, file: str) -> bool:
    """By its name, else by its looks; a flow mapping in a .yaml file stays YAML unless it is JSON as well."""
    if file.endswith(".json"):
        return True
    # Brackets begin a YAML document as well, so what does not begin like JSON is left to the more lenient parser.
    start = text.lstrip()[:64].replace(" ", "").replace("\n", "").replace("\r", "").replace("\t", "")
    return start.startswith(('{"', '[{"'))


def _json(text: str, file: str) -> Iterator[Document]:
    """One JSON value after the other, as `kubectl get -o json` or a line-wise log writes them."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    at, line = 0, 1
    while True:
        start = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing as well
        line += text.count("\n", at, start)
        if start == len(text):
            return
        try:
            body, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            place = f"{file}:{error.lineno}:{error.colno}"
            raise errors.InputError(place, problem=f"broken JSON: {error.msg}", remedy="correct it here") from error
        except errors.InputError as error:
            raise error.within(f"{file}:{line}") from error
        except RecursionError as error:
            problem = f"is nested deeper than {yamls.DEPTH_MAX} levels"
            raise errors.InputError(f"{file}:{line}", problem=problem, remedy="flatten it") from error
        except ValueError as error:  # digits without end
            raise errors.InputError(f"{file}:{line}", problem="holds an endless number", remedy="shorten it") from error
        _bound_depth(body, f"{file}:{line}")
        yield Document(file, f"{file}:{line}", body)
        line += text.count("\n", start, at)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise errors.InputError(problem=f'the key "{yamls.shortened(twice)}" appears twice', remedy="remove one")
    return mapping


def _no_constant(name: str) -> object:
    raise errors.InputError(problem=f"{name} is no JSON", remedy="use a number or a text")


def _bound_depth(body: object, place: str) -> None:
    """The same bound as for YAML: what follows walks documents recursively."""
    level = [body]
    for _ in range(yamls.DEPTH_MAX):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise errors.InputError(place, problem=f"is nested deeper than {yamls.DEPTH_MAX} levels", remedy="flatten it")


def _yaml(text: str, file: str) -> Iterator[Document]:
    try:
        for document in yamls.load(text):
            yield Document(file, f"{file}:{document.line}", document.body)
    except errors.InputError as error:
        first = error.place[0] if error.place else ""
        place = f"{file}:{first}" if first else file
        raise errors.InputError(place, problem=error.problem, remedy=error.remedy) from error


def _unreadable(path: pathlib.Path, error: OSError) -> errors.InputError:
    remedies = {
        FileNotFoundError: "check the path",
        PermissionError: "make it readable",
    }
    remedy = remedies.get(type(error), "give a readable file or folder")
    problem = (error.strerror or str(error)).lower()
    return errors.InputError(str(path), problem=problem, remedy=remedy)


def _too_big(place: str, size: int, bytes_max: int) -> errors.InputError:
    problem = f"is {size >> 20} MiB, more than {bytes_max >> 20} MiB"
    return errors.InputError(place, problem=problem, remedy="split it, or give less of it")
