"""Each mode does what docs/modes.md says of it."""

import asyncio
import random

import pytest

from graphsched.app import settings, wiring
from graphsched.base.values import errors
from tests.fakes import apiserver, virtual


@pytest.mark.parametrize("mode", ["exclusive", "advise", "shadow"])
def test_a_mode_that_is_not_there_yet_is_refused_in_words(mode: str) -> None:
    """It must never run as another one."""

    async def build() -> None:
        async with apiserver.FakeApiServer() as server, server.client() as client:
            wiring.build(settings.load(flags={"--mode": mode}), client, clock=virtual.LoopClock(), rng=random.Random(1))

    with pytest.raises(errors.InputError, match=f'mode: "{mode}" is not available yet'):
        asyncio.run(build())
