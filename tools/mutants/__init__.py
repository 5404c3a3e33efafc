"""Mutation testing: small errors (mutants) are put into the code, one at a time, and
the tests run to see whether one fails (kills it).
"""
