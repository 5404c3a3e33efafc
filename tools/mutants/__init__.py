"""Mutation testing: small errors are put into the code, one at a time, and the tests are asked whether they notice."""
