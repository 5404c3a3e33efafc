"""``python -m botyard`` is the same as the console script ``botyard``."""

from botyard.cli.main import main

if __name__ == "__main__":
    main()
