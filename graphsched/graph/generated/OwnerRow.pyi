from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class OwnerRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Pod(self) -> int: ...
  def Owner(self) -> int: ...

def CreateOwnerRow(builder: flatbuffers.Builder, pod: int, owner: int) -> uoffset: ...

