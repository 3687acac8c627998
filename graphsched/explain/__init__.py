"""
Why: finished decisions become sentences.

Comes in: decisions and their traces, as values. Goes out: text, events, reports. It looks on and never steers.
"""
