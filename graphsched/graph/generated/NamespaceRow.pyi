from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class NamespaceRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Name(self) -> int: ...
  def Labels(self) -> int: ...

def CreateNamespaceRow(builder: flatbuffers.Builder, name: int, labels: int) -> uoffset: ...

