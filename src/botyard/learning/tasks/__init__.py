"""Learning tasks, one in each module; `botyard.learning.catalog` lists their names."""
