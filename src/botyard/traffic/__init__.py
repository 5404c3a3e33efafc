"""Robots on fixed paths divided into sectors, under a supervisor that grants permissions: a second engine beside the 2-D one.

What a path is, and when messages are sent: reference mmrs.md; how it is used: docs/howto/traffic.md.
"""
