from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class ImageRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Size(self) -> int: ...
  def Names(self) -> int: ...
  def Reserved(self) -> int: ...

def CreateImageRow(builder: flatbuffers.Builder, size: int, names: int, reserved: int) -> uoffset: ...

