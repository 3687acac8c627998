"""Files, folders and standard input become documents; what is none of that is refused before it costs anything."""

import codecs
import errno
import io
import json
import pathlib

import pytest

from graphsched.base.values import errors
from graphsched.sources import documents

NODE = b"kind: Node\nmetadata:\n  name: n1\n"


def read(*paths: pathlib.Path | str, stdin: bytes = b"") -> list[documents.Document]:
    """All documents under some paths."""
    return list(documents.read([str(path) for path in paths], stdin=io.BytesIO(stdin)))


def refusal(*paths: pathlib.Path | str, stdin: bytes = b"") -> str:
    """The line about some paths."""
    with pytest.raises(errors.InputError) as caught:
        read(*paths, stdin=stdin)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file that may be written."""
    return tmp_path / "a.yaml"


def test_documents_carry_file_and_line(file: pathlib.Path) -> None:
    """Line 1 is the first."""
    file.write_bytes(b"a: 1\n---\nb: 2\n")

    assert read(file) == [
        documents.Document(str(file), f"{file}:1", {"a": 1}),
        documents.Document(str(file), f"{file}:3", {"b": 2}),
    ]


def test_standard_input_is_a_dash() -> None:
    """It is called stdin in messages."""
    assert [documents.Document("stdin", "stdin:1", {"a": 1})] == read("-", stdin=b"a: 1\n")
    assert "stdin: is empty (give manifests in YAML or JSON)" == refusal("-")


def test_a_folder_is_read_in_the_order_of_names(tmp_path: pathlib.Path) -> None:
    """Manifests only, hidden files left out, folders below included."""
    (tmp_path / "sub").mkdir()
    for name in ("b.yml", "a.json", "sub/c.yaml", ".hidden.yaml", "README.md"):
        (tmp_path / name).write_text(json.dumps({"n": name}))

    assert [{"n": name} for name in ("a.json", "b.yml", "sub/c.yaml")] == [document.body for document in read(tmp_path)]


def test_a_folder_without_manifests_is_refused(tmp_path: pathlib.Path) -> None:
    """It is most likely the wrong one."""
    assert f"{tmp_path}: holds no manifests (it needs .yaml, .yml or .json files)" == refusal(tmp_path)


def test_a_folder_linked_twice_is_no_loop(tmp_path: pathlib.Path) -> None:
    """Only what leads back to itself is."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "n.yaml").write_bytes(NODE)
    (tmp_path / "b").symlink_to(tmp_path / "a")

    assert 2 == len(read(tmp_path))


def test_a_loop_of_folders_is_refused(tmp_path: pathlib.Path) -> None:
    """With the link that closes it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "n.yaml").write_bytes(NODE)
    (tmp_path / "a" / "z").symlink_to(tmp_path)

    assert f"{tmp_path / 'a' / 'z'}: leads back to a folder it lies in (remove the symbolic link)" == refusal(tmp_path)


def test_a_link_to_itself_is_refused(file: pathlib.Path) -> None:
    """The operating system sees that one."""
    file.symlink_to(file)

    assert f"{file}: too many levels of symbolic links (give a readable file or folder)" == refusal(file)


def test_a_missing_file_is_named(tmp_path: pathlib.Path) -> None:
    """As it was given."""
    assert f"{tmp_path / 'x.yaml'}: no such file or directory (check the path)" == refusal(tmp_path / "x.yaml")


def test_an_unreadable_file_is_named(file: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the remedy. Root may read everything, so the system's answer is given for it."""

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    file.write_bytes(NODE)
    monkeypatch.setattr(pathlib.Path, "open", denied)

    assert f"{file}: permission denied (make it readable)" == refusal(file)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "{}: is empty (give manifests in YAML or JSON)"),
        (b"\n\n", "{}: is empty"),
        (b"# a comment\n---\n", "{}: is empty"),
        (codecs.BOM_UTF8, "{}: is empty"),
        (codecs.BOM_UTF16_LE + "a: 1".encode("utf-16-le"), "{}: is UTF-16, not UTF-8 (save it as UTF-8)"),
        (codecs.BOM_UTF16_BE + "a: 1".encode("utf-16-be"), "{}: is UTF-16, not UTF-8 (save it as UTF-8)"),
        (codecs.BOM_UTF32_LE + "a: 1".encode("utf-32-le"), "{}: is UTF-32, not UTF-8 (save it as UTF-8)"),
        (codecs.BOM_UTF32_BE + "a: 1".encode("utf-32-be"), "{}: is UTF-32, not UTF-8 (save it as UTF-8)"),
        ("a: 1".encode("utf-16-le"), "{}: is binary, not text (give manifests in YAML or JSON)"),
        ("a: 1\nb: grün\n".encode("latin-1"), "{}:2: byte 0xfc is not UTF-8 (save it as UTF-8)"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "{}: is binary, not text"),
        (b"\x1f\x8b\x08rest", "{}: is compressed (unpack it first)"),
        (b"PK\x03\x04rest", "{}: is compressed (unpack it first)"),
        (b"a: [1\n", "{}:2:1: broken YAML: "),
        (b"a: 1\na: 2\n", '{}:2:1: the key "a" appears twice'),
        (b"a: \x07\n", "{}: holds the control character #x07"),
    ],
)
def test_what_is_no_manifest_is_refused(file: pathlib.Path, data: bytes, line: str) -> None:
    """Each with its own reason, in one line."""
    file.write_bytes(data)

    assert refusal(file).startswith(line.format(file))


def test_a_mark_of_utf8_is_no_text(file: pathlib.Path) -> None:
    """Windows editors put it there."""
    file.write_bytes(codecs.BOM_UTF8 + b"a: 1\n")

    assert {"a": 1} == read(file)[0].body


def test_a_file_of_a_gigabyte_is_refused_unread(file: pathlib.Path) -> None:
    """By its size alone; a sparse file costs nothing."""
    with file.open("wb") as sparse:
        sparse.truncate(1 << 30)

    assert f"{file}: is 1024 MiB, more than 256 MiB (split it, or give less of it)" == refusal(file)


def test_a_device_without_end_is_refused_by_its_first_block() -> None:
    """It has no size to look at."""
    assert "/dev/zero: is binary, not text (give manifests in YAML or JSON)" == refusal("/dev/zero")


class Endless(io.RawIOBase):
    """Text without end, which counts what was read of it."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int = -1, /) -> bytes:
        """As many blanks as wanted."""
        self.taken += size
        return b" " * size


def test_text_without_end_is_refused_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe is read no further than one byte beyond it."""
    monkeypatch.setattr(documents, "BYTES_MAX", 1 << 20)
    pipe = Endless()

    with pytest.raises(errors.InputError, match="stdin: is 1 MiB, more than 1 MiB"):
        list(documents.read(["-"], stdin=pipe))  # type: ignore[arg-type]
    assert (1 << 20) + 1 == pipe.taken


JSON = [
    ('{"a": 1}', [{"a": 1}]),
    ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
    (' [{"a": 1}] ', [[{"a": 1}]]),
    ('{"a": 1}\n---\n{"b": 2}\n---\r\n', [{"a": 1}, {"b": 2}]),
    ('{"a": 1.5e3, "b": null, "c": "\\u00fc"}', [{"a": 1500.0, "b": None, "c": "ü"}]),
]


@pytest.mark.parametrize(("text", "expected"), JSON)
@pytest.mark.parametrize("name", ["a.json", "-"])
def test_json_is_read_as_json(tmp_path: pathlib.Path, text: str, expected: list[object], name: str) -> None:
    """By the name of the file, else by its looks."""
    (tmp_path / "a.json").write_text(text)
    path = name if name == "-" else str(tmp_path / name)

    assert expected == [document.body for document in read(path, stdin=text.encode())]


def test_several_json_values_know_their_lines() -> None:
    """Also when they are long."""
    text = b'{\n"a": 1\n}\n\n{"b": 2} {"c": 3}\n'

    assert ["stdin:1", "stdin:5", "stdin:5"] == [document.place for document in read("-", stdin=text)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1,}', "{}:1:9: broken JSON: "),
        ('{"a": 1}\n{"b": ', "{}:2:7: broken JSON: Expecting value"),
        ('{"a": 1, "b": {"x": 1, "x": 2}}', '{}:1: the key "x" appears twice (remove one)'),
        ('{"a": NaN}', "{}:1: NaN is no JSON (use a number or a text)"),
        ('{"a": -Infinity}', "{}:1: -Infinity is no JSON"),
        ('{"a": ' + "9" * 5000 + "}", "{}:1: holds an endless number (shorten it)"),
        ('{"a": ' * 101 + "1" + "}" * 101, "{}:1: is nested deeper than 100 levels (flatten it)"),
        ("[" * 100_000, "{}:1: is nested deeper than 100 levels (flatten it)"),
        ("", "{}: is empty"),
        ("a: 1", "{}:1:1: broken JSON: Expecting value (correct it here)"),
    ],
)
def test_broken_json_is_told_with_its_place(tmp_path: pathlib.Path, text: str, line: str) -> None:
    """In one line, with a remedy."""
    path = tmp_path / "a.json"
    path.write_text(text)

    assert refusal(path).startswith(line.format(path))


def test_a_flow_mapping_stays_yaml(file: pathlib.Path) -> None:
    """Only what begins like JSON is JSON."""
    file.write_text("{a: 1, b: [x, y]}\n")

    assert {"a": 1, "b": ["x", "y"]} == read(file)[0].body


@pytest.mark.parametrize("first", ['{"a": 1}', '{"a": x}'])
def test_a_flow_mapping_that_begins_like_json_is_yaml_in_a_yaml_file(file: pathlib.Path, first: str) -> None:
    """Whatever follows in it; and what is wrong with it is told as of YAML."""
    file.write_text(f'{first}\n---\n{{"b": [x, y]}}\n')
    assert {"b": ["x", "y"]} == read(file)[1].body

    file.write_text('{"a": [x, y}\n')
    assert refusal(file).startswith(f"{file}:1:12: broken YAML")


def test_an_empty_path_is_not_the_current_folder() -> None:
    """It is a variable that nobody has set."""
    assert "a path is empty (name a file, a folder, or - for standard input)" == refusal("")
