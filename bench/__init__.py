"""Measurements, with their scenes, seeds and threads; run ``make bench`` or ``python -m
bench [NAME ...]``.

Times are CPU seconds of one process unless stated, the least of several rounds. Every
table has a reference measured in the same run, and gives ratios to it: absolute times
differ from machine to machine.
"""
