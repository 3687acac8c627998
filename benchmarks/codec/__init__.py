"""The codec benchmark: `python -m benchmarks.codec`."""
