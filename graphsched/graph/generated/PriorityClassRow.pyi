from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class PriorityClassRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Name(self) -> int: ...
  def Value(self) -> int: ...
  def Flags(self) -> int: ...

def CreatePriorityClassRow(builder: flatbuffers.Builder, name: int, value: int, flags: int) -> uoffset: ...

