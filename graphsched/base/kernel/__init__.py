"""The one place that knows the kernel and the C library: the only importer of ctypes."""
