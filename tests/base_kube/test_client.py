"""
Calls to the API server: deadlines, credentials that are renewed once, and errors that say what may have happened.

Simulated: the server and its failures (real HTTP, virtual time). Excluded: TLS, which is in `test_credentials.py`.
"""

import asyncio

import pytest

from graphsched.base.kube import client as clients, credentials, lists, wire
from graphsched.base.values import errors
from tests.controlplane import objects
from tests.fakes import apiserver, virtual

PODS = apiserver.PODS
IN_DEFAULT = "/api/v1/namespaces/default/pods"


class Tokens:
    """Loads one token after another; the last one again and again."""

    def __init__(self, server: apiserver.FakeApiServer, *tokens: str) -> None:
        self._server = server
        self._tokens = tokens
        self.loads = 0

    async def load(self) -> credentials.Credentials:
        """Load the next one."""
        token = self._tokens[min(self.loads, len(self._tokens) - 1)]
        self.loads += 1
        return credentials.Credentials(origin="test", server=self._server.url, authorization=f"Bearer {token}")

    def client(self) -> clients.Client:
        """Make a client that uses them."""
        return clients.Client(credentials.Keeper(self.load, clock=virtual.LoopClock()))


@virtual.timed
async def test_an_object_is_created_read_changed_and_deleted() -> None:
    """The five verbs, with the content types that the server tells them apart by."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        await client.post(IN_DEFAULT, objects.pod("web"))
        await client.patch(f"{IN_DEFAULT}/web", {"metadata": {"labels": {"a": "1"}}}, kind="merge")
        condition = {"type": "PodScheduled", "status": "False"}
        body = {"status": {"conditions": [condition]}}
        await client.patch(f"{IN_DEFAULT}/web/status", body, kind="strategic-merge")
        pod = server.pod("web")
        await client.put(f"{IN_DEFAULT}/web", {**pod, "spec": {**pod["spec"], "priority": 5}})
        read = wire.POD.decode(await client.get(f"{IN_DEFAULT}/web"))
        await client.delete(f"{IN_DEFAULT}/web")

        assert ({"a": "1"}, 5) == (read.metadata.labels, read.spec.priority)
        assert condition == pod["status"]["conditions"][0]
        with pytest.raises(errors.NotFoundError, match='pods "web" not found'):
            await client.get(f"{IN_DEFAULT}/web")


@virtual.timed
async def test_credentials_that_are_turned_away_are_renewed_once_and_the_call_repeated() -> None:
    """401 changes nothing, so sending again is safe, for a POST as well."""
    async with apiserver.FakeApiServer() as server:
        server.tokens = {"new"}
        tokens = Tokens(server, "old", "new")
        async with tokens.client() as client:
            await client.post(IN_DEFAULT, objects.pod("web"))

            assert 2 == len(server.asked("POST"))
            assert 2 == tokens.loads


@virtual.timed
async def test_credentials_that_stay_bad_are_an_error_and_no_storm_of_loads() -> None:
    """A hundred calls that fail run the plugin once in ten seconds, not a hundred times."""
    async with apiserver.FakeApiServer() as server:
        server.tokens = {"right"}
        tokens = Tokens(server, "wrong")
        async with tokens.client() as client:
            failures = await asyncio.gather(*(client.get(PODS) for _ in range(100)), return_exceptions=True)

            assert {errors.ForbiddenError} == {type(failure) for failure in failures}
            assert 2 == tokens.loads


@virtual.timed
async def test_a_watch_renews_its_credentials_as_well() -> None:
    """Otherwise the first token to run out would end all watches."""
    async with apiserver.FakeApiServer() as server:
        server.tokens = {"new"}
        async with Tokens(server, "old", "new").client() as client, client.watch(PODS, {"watch": "true"}):
            assert 1 == len(server.watches)


@virtual.timed
async def test_a_call_without_an_answer_fails_at_its_deadline() -> None:
    """And says that it is not known whether it took effect."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.hang("POST", ".*")

        with pytest.raises(errors.UnreachableError, match="no answer"):
            await client.post(IN_DEFAULT, objects.pod("web"), deadline_s=7)

        assert 7 == virtual.now()


@virtual.timed
async def test_a_call_that_is_cancelled_at_its_very_deadline_is_cancelled() -> None:
    """Told as a missing answer it would be tried again, and whoever ends the program would wait for it for ever."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.hang("GET", ".*")
        call = asyncio.create_task(client.get(PODS, deadline_s=7))
        asyncio.get_running_loop().call_later(7, call.cancel)

        await asyncio.wait((call,))

        assert 7 == virtual.now()
        assert call.cancelled()


@virtual.timed
async def test_a_lost_answer_is_not_answered_by_sending_again() -> None:
    """The pod was made; a second POST would be a mistake of ours."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.lose("POST", ".*")

        with pytest.raises(errors.UnreachableError):
            await client.post(IN_DEFAULT, objects.pod("web"))

        assert 1 == len(server.asked("POST"))
        assert "web" == server.pod("web")["metadata"]["name"]


@virtual.timed
async def test_a_server_that_is_down_is_unreachable() -> None:
    """Nobody listens."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        await server.stop()

        with pytest.raises(errors.UnreachableError, match=r"no answer: can not connect to .*: Connection refused"):
            await client.get(PODS)


@virtual.timed
async def test_retry_after_comes_with_the_error() -> None:
    """The caller keeps it."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.refuse("GET", PODS, 429, reason="TooManyRequests", retry_after_s=3)

        with pytest.raises(errors.ClusterError) as caught:
            await client.get(PODS)

        assert (429, "TooManyRequests", 3.0) == (caught.value.status, caught.value.reason, caught.value.retry_after_s)


@virtual.timed
async def test_a_watch_that_does_not_begin_is_given_up() -> None:
    """Its end is far away, but its beginning is due."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.hang("GET", PODS)

        with pytest.raises(errors.UnreachableError):
            async with client.watch(PODS, {"watch": "true"}):
                pytest.fail("it has not begun")

        assert clients.REQUEST_S == virtual.now()


@virtual.timed
async def test_a_refused_watch_says_why() -> None:
    """Status and words are those of the answer."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.refuse("GET", PODS, 400, message="no such place")

        with pytest.raises(errors.ClusterError, match="watch /api/v1/pods: 400 no such place"):
            async with client.watch(PODS, {"watch": "true", "resourceVersion": "5000"}):
                pytest.fail("it has begun")


@virtual.timed
async def test_no_more_requests_than_the_bound_are_under_way() -> None:
    """The others wait for a connection, and get one."""
    async with apiserver.FakeApiServer() as server:
        server.faults.delay("GET", PODS, 1.0, times=6)
        keeper = credentials.Keeper(Tokens(server, "x").load, clock=virtual.LoopClock())
        async with clients.Client(keeper, connections_max=2) as client:
            await asyncio.gather(*(client.get(PODS) for _ in range(6)))

        assert pytest.approx(3) == virtual.now()


@virtual.timed
async def test_pages_of_lists_have_few_connections_and_hold_up_nothing_else() -> None:
    """What has read megabytes keeps a filled buffer, so that no other connection shall."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.delay("GET", PODS, 1.0, times=3 * clients.PAGES_MAX)
        pages = asyncio.gather(*(client.page(PODS, {}) for _ in range(3 * clients.PAGES_MAX)))
        await client.get(apiserver.NODES)
        other = virtual.now()
        await pages

        assert pytest.approx(0) == other
        assert pytest.approx(3) == virtual.now()


@virtual.timed
async def test_nothing_is_asked_for_in_compressed_form() -> None:
    """Decoding costs more than a local network saves."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        await client.get(PODS)

        assert "identity" == server.requests[0].headers["Accept-Encoding"]


@virtual.timed
async def test_a_list_comes_in_pages_of_one_version() -> None:
    """The token of each page leads to the next."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        for index in range(7):
            server.create(PODS, objects.pod(f"p{index}"))

        pages = [page async for page in lists.pages(client, PODS, {}, items_max=3)]

        assert [3, 3, 1] == [len(page.items or ()) for page in pages]
        assert {str(server.storage.version)} == {page.metadata.resource_version for page in pages}


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://cluster.example:6443", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("https://cluster.example:6443", {"HTTP_PROXY": "http://proxy:3128"}, None),
        ("https://cluster.example:6443", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://proxy:3128"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://proxy:3128"}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://proxy:3128"}, None),
        ("https://cluster.example:6443", {}, None),
    ],
)
def test_a_proxy_of_the_environment_is_used_but_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: str, environment: dict[str, str], proxy: str | None
) -> None:
    """As kubectl does."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert proxy == clients.environment_proxy(server)
