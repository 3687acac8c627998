"""
The one place that knows the Kubernetes client library.

Comes in: a kubeconfig or the in-cluster service account. Goes out: an address, credentials and decoded objects.
"""
