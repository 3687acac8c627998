"""From answers to errors: each status has its class, and what may have taken effect is told apart from what has not."""

import json

import pytest

from graphsched.base.kube import answers, wire
from graphsched.base.values import errors


def status(code: int, reason: str = "", message: str = "told so") -> bytes:
    """Encode a Status object."""
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, errors.ClusterError),
        (401, errors.ForbiddenError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.ExpiredError),
        (422, errors.ClusterError),
        (429, errors.ClusterError),
        (500, errors.UnreachableError),
        (502, errors.UnreachableError),
        (503, errors.ClusterError),
        (504, errors.UnreachableError),
    ],
)
def test_each_status_has_its_error(code: int, kind: type[errors.ClusterError]) -> None:
    """The class decides what a caller does next; status, reason and words come along."""
    error = answers.error(code, status(code, "Because"), what="POST /x")

    assert kind is type(error)
    assert (code, "Because", f"POST /x: {code} told so") == (error.status, error.reason, str(error))


@pytest.mark.parametrize("code", [400, 401, 404, 409, 410, 500, 504])
@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "quota.example" denied the request: no such team',
        'Internal error occurred: failed calling webhook "quota.example": connection refused',
    ],
)
def test_what_a_webhook_says_is_no_word_about_the_object(code: int, message: str) -> None:
    """A webhook chooses the status of its refusal, and is asked before anything is written: nothing took effect."""
    error = answers.error(code, status(code, "Because", message), what="POST /x")

    assert errors.ClusterError is type(error)
    assert (code, f"POST /x: {code} {message}") == (error.status, str(error))


def test_503_from_something_in_between_leaves_open_whether_it_took_effect() -> None:
    """A load balancer may have passed the request on before it gave up."""
    error = answers.error(503, b"<html>no healthy upstream</html>", what="POST /x")

    assert errors.UnreachableError is type(error)
    assert "POST /x: 503 <html>no healthy upstream</html>" == str(error)


@pytest.mark.parametrize("code", [404, 409, 410])
def test_what_another_server_says_of_an_object_says_nothing(code: int) -> None:
    """A proxy that knows no such path must not make a pod look deleted, which would then be forgotten."""
    error = answers.error(code, b"404 page not found", what="POST /x")

    assert errors.UnreachableError is type(error)
    assert code == error.status


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("", 0.0), ("3", 3.0), ("100000", 60.0), ("soon", 0.0), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)],
)
def test_retry_after_is_read_in_seconds_and_bounded(header: str, seconds: float) -> None:
    """A server that asks for a day is asked again earlier."""
    assert seconds == answers.error(429, status(429), what="GET /x", retry_after=header).retry_after_s


def test_an_answer_without_words_says_so() -> None:
    """No line ends in a colon and nothing."""
    assert "GET /x: 404 no explanation" == str(answers.error(404, b"", what="GET /x"))


def test_an_answer_that_goes_on_and_on_is_cut() -> None:
    """A log line stays one."""
    assert len(str(answers.error(400, status(400, message="x" * 10**6), what="GET /x"))) < 1100


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (wire.Status(code=410, reason="Expired"), errors.ExpiredError),
        (wire.Status(code=410, reason="Gone"), errors.ExpiredError),
        (wire.Status(code=500, reason="InternalError"), errors.UnreachableError),
        (wire.Status(), errors.ClusterError),
    ],
)
def test_an_error_event_is_read_like_an_answer(told: wire.Status, kind: type[errors.ClusterError]) -> None:
    """The status is in the object instead of in the header."""
    assert kind is type(answers.ended(told, what="watch /x"))


@pytest.mark.parametrize("message", ["denied: no\n  core.PodSpec{Env: hunter2}", "\n denied: no\nhunter2\n"])
def test_only_the_first_line_of_what_is_said_is_repeated(message: str) -> None:
    """Below it stand the differing specs of two pods, whose environment is for no log, event or condition."""
    told = answers.error(403, status(403, message=message), what="POST /x")
    ended = answers.ended(wire.Status(message=message, code=410), what="watch /x")

    assert ["POST /x: 403 denied: no", "watch /x: 410 denied: no"] == [str(told), str(ended)]
