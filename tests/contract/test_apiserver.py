"""
What the scheduler relies on an API server to do, and the fake to do alike.

Each test states one fact and runs on both. Excluded: what only the fake can be made to do (faults), and what a
scheduler never notices.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from graphsched.base.kube import client as clients, lists, streams, wire
from graphsched.base.values import errors
from tests.contract import targets
from tests.controlplane import objects
from tests.fakes import mirror

PODS = "/api/v1/pods"
IN_DEFAULT = "/api/v1/namespaces/default/pods"
UNFINISHED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


async def create(client: clients.Client, name: str, spec: dict[str, Any] | None = None) -> wire.Pod:
    """Create a pod in the namespace `default`."""
    return wire.POD.decode(await client.post(IN_DEFAULT, objects.pod(name, spec=spec)))


async def read(client: clients.Client, name: str) -> dict[str, Any]:
    """Read a pod with all its fields."""
    found: dict[str, Any] = msgspec.json.decode(await client.get(f"{IN_DEFAULT}/{name}"))
    return found


async def bind(client: clients.Client, name: str, node: str, uid: str = "") -> None:
    """Bind a pod, with its uid as a precondition where one is given."""
    metadata = {"name": name, **({"uid": uid} if uid else {})}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    await client.post(f"{IN_DEFAULT}/{name}/binding", body)


async def next_events(watch: streams.Watch, count: int) -> list[tuple[str, str]]:
    """Read so many events that are no bookmarks: type and name."""
    found: list[tuple[str, str]] = []
    while len(found) < count:
        lines = await watch.read()
        assert lines is not None, f"the watch has ended after {found}"
        for line in lines:
            event = wire.EVENT.decode(line)
            if event.type != "BOOKMARK":
                found.append((event.type, wire.BOOKMARK.decode(event.object).metadata.name))
    return found


async def version_now(client: clients.Client) -> str:
    """The version that a list of pods shows."""
    return wire.PAGE.decode(await client.get(PODS)).metadata.resource_version


def test_a_list_comes_in_pages_of_one_version(target: targets.Target) -> None:
    """The last page has no token, and no object comes twice."""

    async def body(client: clients.Client) -> None:
        names = [f"p{index}" for index in range(5)]
        for name in names:
            await create(client, name)

        pages = [page async for page in lists.pages(client, IN_DEFAULT, {}, items_max=2)]

        found = [wire.POD.decode(raw).metadata.name for page in pages for raw in page.items or ()]
        assert ([2, 2, 1], names) == ([len(page.items or ()) for page in pages], found)
        assert 1 == len({page.metadata.resource_version for page in pages})

    target.run(body)


def test_a_name_can_be_given_once(target: targets.Target) -> None:
    """The second creation is a conflict, with a reason of its own."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")

        with pytest.raises(errors.ConflictError, match='pods "web" already exists') as caught:
            await create(client, "web")

        assert (409, "AlreadyExists") == (caught.value.status, caught.value.reason)

    target.run(body)


def test_what_is_not_there_is_not_found(target: targets.Target) -> None:
    """Reading, binding and deleting alike."""

    async def body(client: clients.Client) -> None:
        with pytest.raises(errors.NotFoundError, match='pods "no" not found'):
            await client.get(f"{IN_DEFAULT}/no")
        with pytest.raises(errors.NotFoundError):
            await bind(client, "no", "nowhere")
        with pytest.raises(errors.NotFoundError):
            await client.delete(f"{IN_DEFAULT}/no")

    target.run(body)


def test_a_binding_sets_node_and_condition(target: targets.Target) -> None:
    """The node need not exist: nobody but a scheduler looks."""

    async def body(client: clients.Client) -> None:
        pod = await create(client, "web")

        await bind(client, "web", "nowhere", uid=pod.metadata.uid)
        found = await read(client, "web")

        assert "nowhere" == found["spec"]["nodeName"]
        conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
        assert "True" == conditions["PodScheduled"]

    target.run(body)


def test_a_binding_for_another_uid_is_a_conflict(target: targets.Target) -> None:
    """The pod was deleted and made anew while the decision was under way."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")

        with pytest.raises(errors.ConflictError, match="Precondition failed: UID in precondition"):
            await bind(client, "web", "nowhere", uid="11111111-2222-3333-4444-555555555555")

        assert "nodeName" not in (await read(client, "web"))["spec"]

    target.run(body)


@pytest.mark.parametrize(
    ("spec", "delete", "told"),
    [
        ({"nodeName": "elsewhere"}, False, "already assigned to node"),
        ({"schedulingGates": [{"name": "example.com/wait"}]}, False, "schedulingGates"),
        ({"nodeName": "elsewhere", "terminationGracePeriodSeconds": 30}, True, "being deleted"),
    ],
)
def test_a_pod_that_can_not_be_bound_is_a_conflict(
    target: targets.Target,
    spec: dict[str, Any],
    delete: bool,
    told: str,
) -> None:
    """Bound already, still gated, or on its way out."""

    async def body(client: clients.Client) -> None:
        await create(client, "web", spec)
        if delete:
            await client.delete(f"{IN_DEFAULT}/web")

        with pytest.raises(errors.ConflictError, match=told):
            await bind(client, "web", "nowhere")

    target.run(body)


def test_a_binding_without_a_node_fails(target: targets.Target) -> None:
    """With the status of a server's own mistake."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")

        with pytest.raises(errors.UnreachableError, match=r"500 target\.name: Required value"):
            await bind(client, "web", "")

        assert "nodeName" not in (await read(client, "web"))["spec"]

    target.run(body)


def test_a_status_patch_for_another_version_of_the_pod_is_a_conflict(target: targets.Target) -> None:
    """So a condition that is carried out after the binding comes to nothing."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")
        before = (await read(client, "web"))["metadata"]
        await bind(client, "web", "n1")
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
        metadata = {"uid": before["uid"], "resourceVersion": before["resourceVersion"]}
        late = {"metadata": metadata, "status": {"conditions": [refused]}}

        with pytest.raises(errors.ConflictError):
            await client.patch(f"{IN_DEFAULT}/web/status", late, kind="strategic-merge")

        found = {each["type"]: each["status"] for each in (await read(client, "web"))["status"]["conditions"]}
        assert "True" == found["PodScheduled"]

    target.run(body)


def test_a_status_patch_merges_conditions_by_type_and_leaves_the_spec(target: targets.Target) -> None:
    """A second one that changes nothing makes no new version."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")
        ready = {"type": "Ready", "status": "False"}
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes"}
        path = f"{IN_DEFAULT}/web/status"
        for condition in (ready, refused):
            change = {"status": {"conditions": [condition]}, "spec": {"priority": 99}}
            await client.patch(path, change, kind="strategic-merge")
        before = await read(client, "web")

        await client.patch(path, {"status": {"conditions": [refused]}}, kind="strategic-merge")
        after = await read(client, "web")

        found = {condition["type"]: condition for condition in after["status"]["conditions"]}
        assert {"Ready", "PodScheduled"} == set(found)
        assert refused == {name: found["PodScheduled"][name] for name in refused}
        assert 99 != after["spec"]["priority"]
        assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]

    target.run(body)


def test_a_deletion_for_another_uid_is_a_conflict(target: targets.Target) -> None:
    """Preemption must not hit a successor."""

    async def body(client: clients.Client) -> None:
        await create(client, "web")

        with pytest.raises(errors.ConflictError, match="the UID in the precondition"):
            await client.delete(
                f"{IN_DEFAULT}/web",
                {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}},
            )

    target.run(body)


def test_a_pending_pod_is_deleted_at_once_and_a_bound_one_is_marked(target: targets.Target) -> None:
    """A kubelet has to end it first, unless nobody gave it any grace."""

    async def body(client: clients.Client) -> None:
        grace = {"terminationGracePeriodSeconds": 30}
        await create(client, "pending", grace)
        await create(client, "bound", {**grace, "nodeName": "nowhere"})

        for name in ("pending", "bound"):
            await client.delete(f"{IN_DEFAULT}/{name}")

        assert "deletionTimestamp" in (await read(client, "bound"))["metadata"]
        with pytest.raises(errors.NotFoundError):
            await read(client, "pending")

    target.run(body)


def test_a_watch_tells_what_happens_after_its_version(target: targets.Target) -> None:
    """In order, and nothing from before."""

    async def body(client: clients.Client) -> None:
        await create(client, "before")
        query = {"watch": "true", "resourceVersion": await version_now(client), "allowWatchBookmarks": "true"}

        async with client.watch(PODS, query) as watch:
            await create(client, "web")
            await bind(client, "web", "nowhere")
            await client.delete(f"{IN_DEFAULT}/web", {"gracePeriodSeconds": 0})
            found = await next_events(watch, 4)

        # A bound pod is marked as being deleted first, even without grace.
        assert [("ADDED", "web"), ("MODIFIED", "web"), ("MODIFIED", "web"), ("DELETED", "web")] == found

    target.run(body)


def test_a_pod_that_ends_leaves_a_watch_of_unfinished_ones_as_a_deletion(target: targets.Target) -> None:
    """That is why the scheduler need not know of phases."""

    async def body(client: clients.Client) -> None:
        query = {"watch": "true", "resourceVersion": await version_now(client), **UNFINISHED}

        async with client.watch(PODS, query) as watch:
            await create(client, "web", {"nodeName": "nowhere"})
            change = {"status": {"phase": "Succeeded"}}
            await client.patch(f"{IN_DEFAULT}/web/status", change, kind="strategic-merge")
            found = await next_events(watch, 2)
        listed = wire.PAGE.decode(await client.get(PODS, UNFINISHED))

        assert [("ADDED", "web"), ("DELETED", "web")] == found
        assert [] == list(listed.items or ())

    target.run(body)


def test_a_watch_ends_after_the_time_that_was_asked_for(target: targets.Target) -> None:
    """Cleanly, between two lines."""

    async def body(client: clients.Client) -> None:
        query: clients.Query = {"watch": "true", "resourceVersion": await version_now(client), "timeoutSeconds": 1}
        began = asyncio.get_running_loop().time()

        async with client.watch(PODS, query) as watch:
            while await watch.read() is not None:
                pass

        assert 0.5 <= asyncio.get_running_loop().time() - began < 10

    target.run(body)


def test_a_version_from_long_ago_has_expired(target: targets.Target) -> None:
    """As an answer or as the first event; either way 410."""

    async def body(client: clients.Client) -> None:
        version = await version_now(client)
        await create(client, "web")
        target.forget()
        status = wire.Status()
        try:
            async with client.watch(PODS, {"watch": "true", "resourceVersion": version}) as watch:
                lines = await watch.read()
                assert lines
                event = wire.EVENT.decode(lines[0])
                assert "ERROR" == event.type
                status = wire.STATUS.decode(event.object)
        except errors.ExpiredError as error:
            status = wire.Status(code=error.status, reason=error.reason)

        assert (410, "Expired") == (status.code, status.reason)

    target.run(body)


def test_a_watch_from_the_future_begins_and_says_nothing(target: targets.Target) -> None:
    """After a restored backup our place may be one, and only the silence gives it away."""

    async def body(client: clients.Client) -> None:
        query: clients.Query = {
            "watch": "true",
            "resourceVersion": "999999999999",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": 4,
        }

        async with client.watch(PODS, query) as watch:
            await create(client, "web")
            said = await watch.read()

        assert said is None

    target.run(body)


def test_an_event_about_a_pod_is_recorded(target: targets.Target) -> None:
    """In the form of events.k8s.io/v1."""

    async def body(client: clients.Client) -> None:
        pod = await create(client, "web")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "web.1", "namespace": "default"},
            "eventTime": "2027-01-15T08:00:00.000000Z",
            "reportingController": "graph-scheduler",
            "reportingInstance": "graph-scheduler-0",
            "action": "Scheduling",
            "reason": "FailedScheduling",
            "type": "Warning",
            "note": "0/0 nodes are available.",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "default",
                "name": "web",
                "uid": pod.metadata.uid,
            },
        }
        path = "/apis/events.k8s.io/v1/namespaces/default/events"

        await client.post(path, event)
        found = msgspec.json.decode(await client.get(f"{path}/web.1"))

        assert ("FailedScheduling", "web") == (found["reason"], found["regarding"]["name"])

    target.run(body)


def test_a_reflector_loses_nothing_when_the_history_is_forgotten(target: targets.Target) -> None:
    """On the real server by killing it: watches break, and their place may or may not be known afterwards."""

    async def body(client: clients.Client) -> None:
        for name in ("kept", "gone"):
            await create(client, name)
        async with mirror.following_pods(client) as pods:
            await pods.mirror.until("default/gone", "default/kept")
            target.forget()
            await client.delete(f"{IN_DEFAULT}/gone")
            await create(client, "new")
            await pods.mirror.until("default/kept", "default/new")

    target.run(body)


def test_a_reflector_follows_a_pod_through_its_life(target: targets.Target) -> None:
    """Made before the list, made after it, bound, and gone."""

    async def body(client: clients.Client) -> None:
        await create(client, "first")
        async with mirror.following_pods(client) as pods:
            await pods.mirror.until("default/first")
            await create(client, "second")
            await pods.mirror.until("default/first", "default/second")
            await bind(client, "second", "nowhere")
            while pods.mirror.pod("default/second").node != "nowhere":
                await pods.inbox.ready.wait()
                pods.mirror.take()
            for name in ("first", "second"):
                await client.delete(f"{IN_DEFAULT}/{name}", {"gracePeriodSeconds": 0})
            await pods.mirror.until()

            assert 1 == sum(count for name, count in pods.counts.items() if "relist" in name)

    target.run(body)
