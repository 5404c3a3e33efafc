"""The composition root: puts a simulator together and runs it, for the command line and
for `botyard.serve`.
"""
