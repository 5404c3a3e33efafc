"""Composition root: assembles a simulator and runs it.

Used by the command line and by `botyard.serve`.
"""
