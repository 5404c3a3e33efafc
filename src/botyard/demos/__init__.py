"""Shows for ``botyard demo``: worlds that demonstrate botyard for about a minute each."""
