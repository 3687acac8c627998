"""GraphPolicy objects as patches: what a watch or a list says of them becomes rules in the graph.

Comes in: objects as they came from the API server, one at a time or a whole list. Goes out: patches in the stream
`watch/graphpolicies` to the inbox, and what there is to know of each policy for whoever writes its status.

Invariants: an object that went away unseen is removed with the next list; an older state never replaces a newer one,
whichever of watch and list brought it; an object that can not be read keeps the rules it had, and is known with the
reason, for its status.
"""

from __future__ import annotations

import asyncio
import logging
import typing
from collections.abc import Sequence

import msgspec

from graphsched.base.kube import checks, policies as kube_policies, versions
from graphsched.base.values import errors, keys, policies
from graphsched.graph import delta
from graphsched.sources import inbox as inboxes

_log = logging.getLogger(__name__)

SOURCE = "watch/graphpolicies"
NAMELESS_MAX = 64


class Known(msgspec.Struct, frozen=True, gc=False):
    """A policy as it was last seen.

    Attributes:
        body: The object, as far as its status needs it.
        read: Its rules and their problems.
    """

    body: kube_policies.Outline
    read: kube_policies.Read


class Feed:
    """Turns objects into patches.

    Attributes:
        known: Name → policy.
        changes: Counts up with every state of an object that was taken in.
    """

    def __init__(self, inbox: inboxes.Inbox) -> None:
        self.known: dict[str, Known] = {}
        self.changes = 0
        self._nameless: set[str] = set()
        """What was said of objects that have no name to be known by."""
        self._inbox = inbox
        self._sent: dict[str, dict[keys.VertexKey, policies.Rule]] = {}
        self._gone: dict[str, str] = {}
        """Name of a policy that was deleted since the last list → the version of the deletion."""
        self._epoch = 1
        self._sequence = 0
        self._turn = asyncio.Lock()

    async def told(self, kind: str | None, manifest: typing.Any) -> None:
        """A watch told of an object; `kind` is that of the event, None for one of its first list."""
        found = self._decoded(manifest)
        if found is None:
            return
        async with self._turn:
            if kind == "DELETED":
                await self._deleted(found.body)
            else:
                await self._seen(found)

    async def listed(self, manifests: Sequence[typing.Any], version: str) -> None:
        """All objects there are at `version`."""
        found = [known for each in manifests if (known := self._decoded(each)) is not None]
        names = {known.body.metadata.name for known in found}
        async with self._turn:
            for name in sorted(self.known.keys() - names):
                if not versions.earlier(version, self.known[name].body.metadata.resource_version):
                    await self._drop(name)
            for known in found:
                if not versions.earlier(version, self._gone.get(known.body.metadata.name, "")):
                    await self._seen(known)
            self._gone.clear()

    async def empty(self) -> None:
        """There are no such objects any more."""
        async with self._turn:
            for name in sorted(self.known):
                await self._drop(name)

    def resync(self, reason: str, *, epoch: int = 0) -> None:
        """Send everything again with what is told next: the graph has lost track. An epoch that is over is nobody's."""
        if epoch not in {0, self._epoch}:
            return
        _log.info("rules of policies are sent again: %s", reason)
        self._epoch, self._sequence = self._epoch + 1, 0
        for name in self._sent:
            # The keys stay known, so that what is gone is removed; no rule is taken for sent.
            self._sent[name] = dict.fromkeys(self._sent[name], _UNSENT)
        self.known = {
            name: msgspec.structs.replace(known, body=_aged(known.body)) for name, known in self.known.items()
        }

    def _decoded(self, manifest: typing.Any) -> Known | None:
        """The policy, or why it is none; None for what has no name by which it could be told."""
        try:
            outline = kube_policies.OUTLINE.convert(manifest)
            checks.name(kube_policies.KIND, outline.metadata)
        except errors.InputError as error:
            if (told := kube_policies.shown(str(error))) not in self._nameless and len(self._nameless) < NAMELESS_MAX:
                self._nameless.add(told)
                _log.warning("a GraphPolicy has no name by which it could be known, and is left out: %s", told)
            return None
        try:
            return Known(outline, kube_policies.read(kube_policies.POLICY.convert(manifest)))
        except (errors.InputError, RecursionError) as error:
            return Known(outline, kube_policies.Read(outline.metadata.name, unreadable=kube_policies.shown(str(error))))

    async def _seen(self, found: Known) -> None:
        metadata, read = found.body.metadata, found.read
        before = self.known.get(metadata.name)
        if before is not None and metadata.uid == before.body.metadata.uid:
            held = before.body.metadata.resource_version
            if metadata.resource_version == held or versions.earlier(metadata.resource_version, held):
                return
            if read.unreadable:
                read = msgspec.structs.replace(before.read, unreadable=read.unreadable)
        if read.unreadable:
            _log.warning("a GraphPolicy can not be read, and keeps the rules it had: %s", read.unreadable)
        self.known[metadata.name] = Known(found.body, read)
        self._gone.pop(metadata.name, None)
        self.changes += 1
        await self._state(metadata.name, {rule.key: rule for rule in read.rules})

    async def _deleted(self, body: kube_policies.Outline) -> None:
        name, before = body.metadata.name, self.known.get(body.metadata.name)
        if before is None or before.body.metadata.uid == body.metadata.uid:
            await self._drop(name)
            self._gone[name] = body.metadata.resource_version

    async def _drop(self, name: str) -> None:
        if self.known.pop(name, None) is not None:
            self.changes += 1
            await self._state(name, {})

    async def _state(self, policy: str, rules: dict[keys.VertexKey, policies.Rule]) -> None:
        """Bring the graph to hold just these rules of the policy."""
        sent = self._sent.pop(policy, {})
        patch = delta.Patch()
        for key in sorted(sent.keys() - rules.keys()):
            patch.remove(key)
        for key, rule in rules.items():
            if sent.get(key) != rule:
                patch.set_vertex(rule)
        if rules:
            self._sent[policy] = rules
        if not len(patch):
            return
        self._sequence += 1
        patch.stream = delta.Stream(SOURCE, self._epoch, self._sequence)
        await self._inbox.put(patch)


_UNSENT = policies.Rule("", -1)


def _aged(body: kube_policies.Outline) -> kube_policies.Outline:
    """The object as if an older state of it were known, so that the next list is taken in."""
    return msgspec.structs.replace(body, metadata=msgspec.structs.replace(body.metadata, resource_version=""))
