"""
The ground: values without I/O, and the thin shells round foreign code.

`values` holds ids, quantities, status, errors and the structs of pods and nodes. `kube` is the only importer of
kubernetes_asyncio, `kernel` the only importer of ctypes, `kit` holds clock, tasks and retry for the impure layers.
"""
