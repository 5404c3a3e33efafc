"""Supervisors, which grant robots the next sectors of their paths."""
