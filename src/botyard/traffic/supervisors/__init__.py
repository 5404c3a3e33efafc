"""Supervisors: who grants robots the next sector of their path."""
