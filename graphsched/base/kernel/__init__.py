"""
The one place that knows the kernel: the only importer of ctypes.

Empty until the agent needs it; it exists so that the layer contract can name it.
"""
