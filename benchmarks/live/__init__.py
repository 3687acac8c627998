"""The live benchmark: schedulers measured in turn on a real API server. See `__main__.py`."""
