"""Avoiding others and obstacles: published methods over arrays of many worlds, as
compiled code.
"""
