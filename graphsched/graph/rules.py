"""The policy layer: the rules that are in the graph.

`store` writes them, `decision/policy` compiles them and keeps what it compiled for as long as `version` stands.
"""

from __future__ import annotations

from graphsched.base.values import keys, policies


class Rules:
    """The rules in force.

    Attributes:
        version: Counts up with every change.
    """

    def __init__(self) -> None:
        self._by_key: dict[keys.VertexKey, policies.Rule] = {}
        self.version = 0

    def __len__(self) -> int:
        """Number of rules: nobody need look further when it is 0."""
        return len(self._by_key)

    def set(self, key: keys.VertexKey, rule: policies.Rule | None) -> None:
        """Add or replace a rule, or take it away; nothing changes where it is as it was."""
        if self._by_key.get(key) == rule:
            return
        self.version += 1
        if rule is None:
            del self._by_key[key]
        else:
            self._by_key[key] = rule

    def all(self) -> list[policies.Rule]:
        """Every rule, the greatest priority first, then by policy and number."""
        return sorted(self._by_key.values(), key=lambda rule: (-rule.priority, rule.policy, rule.number))
