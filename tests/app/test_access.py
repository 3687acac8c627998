"""
Delegated authentication and authorization: who is let in, what is asked of the API server, and how often.

Simulated: time, and the API server, which answers reviews as `tests.fakes.reviews` says.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from graphsched.app import access
from graphsched.observe import access as words
from tests.fakes import apiserver, reviews, virtual

SCRAPER = "system:serviceaccount:monitoring:prometheus"
TOKEN = "canary-token-of-the-scraper"


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[tuple[access.Delegated, apiserver.FakeApiServer]]:
    """A guard before a server that knows one scraper, who may get /metrics."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.reviews.users[TOKEN] = SCRAPER
        server.reviews.rights.add((SCRAPER, "/metrics"))
        yield access.Delegated(client, clock=virtual.LoopClock()), server


def asked(server: apiserver.FakeApiServer) -> tuple[int, int]:
    """How many reviews of tokens and of access there were."""
    return len(server.asked("POST", reviews.TOKENS)), len(server.asked("POST", reviews.ACCESS))


@virtual.timed
async def test_a_token_with_the_right_is_let_in() -> None:
    """The user is passed on whole: authorizers go by groups and the rest, too."""
    async with guarded() as (guard, server):
        assert words.Verdict(200) == await guard(TOKEN, "/metrics")
        (review,) = server.asked("POST", reviews.ACCESS)

    assert {
        "user": SCRAPER,
        "uid": "u1",
        "groups": ["system:authenticated"],
        "extra": {"node": ["n1"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    } == review.body["spec"]


@virtual.timed
async def test_a_token_without_the_right_is_refused() -> None:
    """403 names the user, the path and what would help; the right to one path is none to another."""
    async with guarded() as (guard, _):
        verdict = await guard(TOKEN, "/debug/graph")

    assert 403 == verdict.status
    assert f"{SCRAPER} may not get /debug/graph: a ClusterRole with nonResourceURLs" in verdict.text


@virtual.timed
async def test_nobody_is_asked_to_say_who_they_are() -> None:
    """No token at all is 401, and nothing is asked of the API server."""
    async with guarded() as (guard, server):
        verdict = await guard("", "/metrics")
        assert (0, 0) == asked(server)

    assert (401, True) == (verdict.status, "a bearer token is needed" in verdict.text)


@virtual.timed
async def test_a_token_nobody_knows_is_refused_and_remembered() -> None:
    """401; the same token is not asked about again for ten seconds."""
    async with guarded() as (guard, server):
        verdicts = [await guard("garbage", path) for path in ("/metrics", "/configz", "/metrics")]
        assert (1, 0) == asked(server)
        await asyncio.sleep(access.REMEMBERED_S)
        server.reviews.users["garbage"] = SCRAPER
        assert 200 == (await guard("garbage", "/metrics")).status

    assert [401] * 3 == [verdict.status for verdict in verdicts]


@virtual.timed
async def test_answers_are_remembered_for_ten_seconds() -> None:
    """Just before they are, just after they are not, and what was revoked meanwhile is noticed."""
    async with guarded() as (guard, server):
        await guard(TOKEN, "/metrics")
        await asyncio.sleep(access.REMEMBERED_S - 0.1)
        server.reviews.rights.clear()
        assert 200 == (await guard(TOKEN, "/metrics")).status
        assert (1, 1) == asked(server)
        await asyncio.sleep(0.2)
        assert 403 == (await guard(TOKEN, "/metrics")).status
        server.reviews.users.clear()
        await asyncio.sleep(access.REMEMBERED_S)
        assert 401 == (await guard(TOKEN, "/metrics")).status


@virtual.timed
async def test_requests_that_wait_take_the_answer_of_those_before() -> None:
    """Ten requests at once with one token cost no more reviews than are on their way at a time."""
    async with guarded() as (guard, server):
        server.faults.delay("POST", reviews.TOKENS, 0.5)
        verdicts = await asyncio.gather(*(guard(TOKEN, "/metrics") for _ in range(10)))
        assert asked(server) <= (access.REVIEWS_MAX, access.REVIEWS_MAX)

    assert [200] * 10 == [verdict.status for verdict in verdicts]


@virtual.timed
async def test_a_flood_of_tokens_is_bounded() -> None:
    """So many are asked about at a time, so many wait, the rest is told to come back at once."""
    async with guarded() as (guard, server):
        server.faults.delay("POST", reviews.TOKENS, 1.0, times=1000)
        flood = [asyncio.create_task(guard(f"garbage-{number}", "/metrics")) for number in range(100)]
        await asyncio.sleep(0.5)
        assert access.REVIEWS_MAX == len(server.asked("POST", reviews.TOKENS))
        told = [task.result().status for task in flood if task.done()]
        assert [503] * (100 - access.REVIEWS_MAX - access.WAITING_MAX) == told
        await asyncio.gather(*flood)
        assert virtual.now() < 6.0
        assert 200 == (await guard(TOKEN, "/metrics")).status


@virtual.timed
async def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tokens come, the oldest answers go."""
    monkeypatch.setattr(access, "REMEMBERED_MAX", 10)
    async with guarded() as (guard, _):
        for number in range(30):
            await guard(f"garbage-{number}", "/metrics")
        assert 10 == len(guard._users)


@virtual.timed
async def test_an_api_server_that_hangs_is_waited_for_within_bounds() -> None:
    """503 after the deadline of a question, told and logged; nothing is remembered of it."""
    async with guarded() as (guard, server):
        server.faults.hang("POST", reviews.TOKENS)
        verdict = await guard(TOKEN, "/metrics")
        assert access.REVIEW_S == pytest.approx(virtual.now(), abs=0.1)
        assert 200 == (await guard(TOKEN, "/metrics")).status

    assert words.Verdict(503, "the API server can not be asked whose token this is, try again") == verdict


@virtual.timed
async def test_those_who_wait_too_long_are_told() -> None:
    """Behind questions that hang, a request gets its answer within ten seconds."""
    async with guarded() as (guard, server):
        server.faults.hang("POST", ".*", times=1000)
        verdicts = await asyncio.gather(*(guard(f"t{number}", "/metrics") for number in range(16)))
        assert access.CHECK_S == pytest.approx(virtual.now(), abs=0.2)

    assert {503} == {verdict.status for verdict in verdicts}


@virtual.timed
@pytest.mark.parametrize("path", [reviews.TOKENS, reviews.ACCESS])
async def test_a_missing_right_of_our_own_is_named(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asked sees 503 and the role to bind; the log has the API server's words."""
    async with guarded() as (guard, server):
        server.faults.refuse("POST", path, 403, message="cannot create resource")
        verdict = await guard(TOKEN, "/metrics")

    assert (503, True) == (verdict.status, "bind the ClusterRole system:auth-delegator" in verdict.text)
    assert "cannot create resource" in caplog.text


@virtual.timed
async def test_an_answer_that_is_none_lets_nobody_in() -> None:
    """A proxy's page, and an object without a status."""
    async with guarded() as (guard, server):
        for text in (b"<html>", b"{}", b'{"status": {"authenticated": true}}', b'{"status": {"authenticated": 1}}'):
            server.faults.garble("POST", reviews.TOKENS, text)
            assert (await guard(f"token{len(text)}", "/metrics")).status in {401, 503}
        for text in (b"<html>", b"{}", b'{"status": {"allowed": true, "denied": true}}'):
            server.faults.garble("POST", reviews.ACCESS, text)
            assert (await guard(TOKEN, f"/{len(text)}")).status in {403, 503}


@virtual.timed
async def test_no_token_is_kept_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Not in what is remembered, not in the log of a failure at level debug, not in a verdict."""
    caplog.set_level(logging.DEBUG)
    async with guarded() as (guard, server):
        texts = [(await guard(TOKEN, "/metrics")).text, (await guard(TOKEN, "/debug/graph")).text]
        server.faults.refuse("POST", reviews.TOKENS, 500)
        texts.append((await guard(f"{TOKEN}-2", "/metrics")).text)
        kept = [*guard._users._entries.items(), *guard._rights._entries.items()]

    assert 3 == len(kept)
    assert TOKEN not in repr(kept) + caplog.text + "".join(texts)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc.def", "abc.def"),
        ("bearer  abc ", "abc"),
        ("", ""),
        ("Bearer", ""),
        ("Bearer a b", ""),
        ("Basic abc", ""),
        ("Bearer \x01", ""),
        ("Bearer ä", ""),
        ("abc", ""),
    ],
)
def test_only_what_may_be_a_token_is_asked_about(header: str, token: str) -> None:
    """The scheme is spelt either way; what can be none costs no question."""
    assert token == words.bearer(header)
