"""Shipped scenarios that are drawn in code: ``python -m tools.worlds`` writes them."""
