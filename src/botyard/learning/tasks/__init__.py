"""Tasks, one in each file; `botyard.learning.catalog` has their names."""
