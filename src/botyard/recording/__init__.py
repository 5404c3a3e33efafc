"""Recordings of runs: written, read, done again."""
