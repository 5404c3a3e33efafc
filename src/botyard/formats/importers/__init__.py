"""Readers of world files of other simulators.

Each reader has a table of the keys of its format (`keys.Keys`). A key is either read, or a warning
with file and line says that it is left out.
"""
