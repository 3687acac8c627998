"""
What is going on: metrics, health and logs.

Comes in: finished values, handed over by `app`. Goes out: `/metrics`, health endpoints, structured logs. It looks on
and never steers.
"""
