from __future__ import annotations

import flatbuffers
import numpy as np

import typing
from graphsched.graph.generated.EdgeKind import EdgeKind

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class CutEdge(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Source(self) -> int: ...
  def Target(self) -> int: ...
  def Kind(self) -> typing.Literal[EdgeKind.Contains, EdgeKind.Link, EdgeKind.Runs]: ...

def CreateCutEdge(builder: flatbuffers.Builder, source: int, target: int, kind: typing.Literal[EdgeKind.Contains, EdgeKind.Link, EdgeKind.Runs]) -> uoffset: ...

