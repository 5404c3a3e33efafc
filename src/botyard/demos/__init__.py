"""Shows of about a minute each for ``botyard demo``; `catalog` lists them."""
