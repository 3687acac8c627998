"""API objects are decoded by their types, and what has others is told by object and field."""

import typing

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.kube import complaints, wire
from graphsched.base.values import errors


def test_a_line_of_a_watch_keeps_its_object_raw() -> None:
    """Its kind decides how it is decoded."""
    event = wire.EVENT.decode(b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}}')

    assert ("ADDED", "a") == (event.type, wire.POD.decode(event.object).metadata.name)


def test_a_bookmark_holds_a_version() -> None:
    """And nothing else that matters."""
    event = wire.EVENT.decode(
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null},'
        b'"spec":{"containers":null},"status":{}}}',
    )

    assert "12" == wire.BOOKMARK.decode(event.object).metadata.resource_version


def test_an_error_is_a_status() -> None:
    """410 arrives like this in the middle of a watch."""
    event = wire.EVENT.decode(
        b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","message":"too old","reason":"Expired",'
        b'"code":410}}',
    )

    assert wire.Status("too old", "Expired", 410) == wire.STATUS.decode(event.object)


def test_a_page_says_how_to_go_on() -> None:
    """Its items stay raw: a malformed one costs only itself."""
    page = wire.PAGE.decode(
        b'{"metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":3},"items":[{"metadata":3},{}]}',
    )

    assert ("7", "abc", 3) == (
        page.metadata.resource_version,
        page.metadata.continue_,
        page.metadata.remaining_item_count,
    )
    assert page.items is not None
    assert wire.Pod() == wire.POD.decode(page.items[1])
    with pytest.raises(errors.InputError):
        wire.POD.decode(page.items[0])


def test_an_empty_page_may_say_null() -> None:
    """Go writes an empty list as null."""
    assert wire.PAGE.decode(b'{"metadata":{},"items":null}').items is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b'{"metadata":{"name":"a","labels":{"x":"1","v":2}}}',
            'Pod "default/a": metadata.labels.v: is an integer, not a',
        ),
        (
            b'{"metadata":{"name":"a","namespace":"s"},"spec":{"nodeName":[]}}',
            'Pod "s/a": spec.nodeName: is a list, not',
        ),
        (
            b'{"metadata":{"name":"a"},"spec":{"containers":[{},{"ports":[{"hostPort":"80"}]}]}}',
            'Pod "default/a": spec.containers[1].ports[0].hostPort: is a text, not an integer (write an integer)',
        ),
        (
            b'{"metadata":{"name":"a"},"spec":{"containers":[{"resources":{"requests":{"cpu":true}}}]}}',
            'Pod "default/a": spec.containers[0].resources.requests.cpu: is not a quantity (use e.g. 12, 500m',
        ),
        (
            b'{"metadata":{"name":"a","creationTimestamp":"now"}}',
            'Pod "default/a": metadata.creationTimestamp: Invalid',
        ),
        (b'{"metadata":{"name":"a","creationTimestamp":"2025-01-01T00:00:00"}}', 'Pod "default/a": metadata.creation'),
        (b'{"metadata":[]}', "Pod: metadata: is a list, not a mapping (write a mapping)"),
        (b"[]", "Pod: is a list, not a mapping"),
        (b'{"metadata"', "Pod: not valid JSON: "),
        (b"", "Pod: not valid JSON: "),
        (b"\xff\xfe{", "Pod: not valid JSON: "),
        (b'{"metadata":{"name":"\xff"}}', "Pod: not valid JSON: "),
        (b'{"metadata":' + b"[" * 100_000, "Pod: not valid JSON: "),
    ],
)
def test_a_malformed_object_is_one_line_with_object_and_field(raw: bytes, message: str) -> None:
    """Never another exception: it must not end a watch."""
    with pytest.raises(errors.InputError) as caught:
        wire.POD.decode(raw)

    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({"metadata": {"name": "a", "labels": {1: "x"}}}, "metadata.labels: a key is an integer, not a text"),
        (
            {"metadata": {"name": "a", "labels": {"v": 1.5}}},
            "metadata.labels.v: is a number, not a text (put it in quotes)",
        ),
        (
            {"metadata": {"name": "a"}, "spec": {"nodeSelector": {"gpu": None}}},
            "spec.nodeSelector.gpu: is nothing, not a",
        ),
        ({"metadata": {"name": "a"}, "spec": {"containers": {}}}, "spec.containers: is a mapping, not a list"),
        ({"metadata": {"name": "a"}, "spec": {"containers": [None]}}, "spec.containers[0]: is nothing, not a mapping"),
        ({"metadata": {"name": "a"}, "spec": {"priority": 1.5}}, "spec.priority: is a number, not an integer"),
        ({"metadata": {"name": "a"}, "spec": {"hostNetwork": "yes"}}, "spec.hostNetwork: is a text, not true or false"),
    ],
)
def test_a_wrong_type_in_a_manifest_is_named(manifest: object, message: str) -> None:
    """With the key or index, which the decoder leaves out."""
    with pytest.raises(errors.InputError) as caught:
        wire.POD.convert(manifest)

    assert str(caught.value).startswith(f'Pod "default/a": {message}')


def test_null_fields_of_a_manifest_are_absent() -> None:
    """`namespace:` with nothing behind it is what people leave in files."""
    manifest = {"metadata": {"name": "a", "namespace": None}, "spec": {"nodeName": None, "tolerations": None}}

    assert wire.Pod(metadata=wire.Metadata(name="a")) == wire.POD.convert(manifest)


@pytest.mark.parametrize(
    ("kind", "manifest", "expected"),
    [
        ("Node", {"metadata": {"name": "n"}}, 'Node "n"'),
        ("Pod", {"metadata": {"name": "p"}}, 'Pod "default/p"'),
        ("Pod", {"metadata": {"name": "p", "namespace": "s"}}, 'Pod "s/p"'),
        ("Pod", {"metadata": {"name": 3}}, "Pod"),
        ("Pod", {}, "Pod"),
        ("Pod", 3, "Pod"),
    ],
)
def test_objects_are_called_as_users_call_them(kind: str, manifest: object, expected: str) -> None:
    """Namespaced ones with their namespace."""
    assert expected == complaints.title(kind, manifest)


json_like = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(max_size=4),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            strategies.sampled_from(["metadata", "spec", "name", "labels", "containers", "x"]), inner
        )
    ),
    max_leaves=12,
)


def complaint(decode: typing.Callable[[], object]) -> str:
    """What decoding complains of; nothing when it succeeds."""
    try:
        decode()
    except errors.InputError as error:
        return str(error)
    return ""


@hypothesis.given(json_like)
def test_whatever_comes_in_is_a_pod_or_one_line(manifest: object) -> None:
    """No other exception, no second line."""
    told = complaint(lambda: wire.POD.convert(manifest))

    assert not told or (told.startswith("Pod") and "\n" not in told)


@hypothesis.given(strategies.binary(max_size=40))
def test_whatever_the_bytes_it_is_a_pod_or_one_line(raw: bytes) -> None:
    """The same for the network."""
    told = complaint(lambda: wire.POD.decode(raw))

    assert not told or (told.startswith("Pod") and "\n" not in told)
