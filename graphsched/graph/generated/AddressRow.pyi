from __future__ import annotations

import flatbuffers
import numpy as np

import typing

uoffset: typing.TypeAlias = flatbuffers.number_types.UOffsetTFlags.py_type

class AddressRow(object):
  @classmethod
  def SizeOf(cls) -> int: ...

  def Init(self, buf: bytes, pos: int) -> None: ...
  def Node(self) -> int: ...
  def Addresses(self) -> int: ...

def CreateAddressRow(builder: flatbuffers.Builder, node: int, addresses: int) -> uoffset: ...

