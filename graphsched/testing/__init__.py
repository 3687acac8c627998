"""For authors of plugins: `PluginContract`, tests that a plugin must pass.

Public: what is named here stays, and changes only with a word in the change log. It needs no test framework; pytest
finds the tests of a class derived from it.
"""

from graphsched.testing.plugins import PluginContract, sample

__all__ = ["PluginContract", "sample"]
