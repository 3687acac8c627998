from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class ContainsEdge(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Source(self) -> int: ...
  def Target(self) -> int: ...
  def By(self) -> int: ...

def CreateContainsEdge(builder: flatbuffers.Builder, source: int, target: int, by: int) -> uoffset: ...

