"""A robot model; `rover.toml` has its data.

botyard models rover
botyard office -r rover:ann --controller wander
"""
