from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class AmountRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Amount(self) -> int: ...
  def Name(self) -> int: ...
  def Reserved(self) -> int: ...

def CreateAmountRow(builder: flatbuffers.Builder, amount: int, name: int, reserved: int) -> uoffset: ...

