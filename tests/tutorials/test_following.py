"""The reader of the tutorials notices each difference between a page and a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.networks import Network, missing_namespaces
from tests.tutorials.following import Reader

GOOD = """
Save this as `hello.txt`:

```text
Hello, reader 1
```

Add this to `hello.txt`:

```yaml
and goodbye
```

```console
$ cat hello.txt
Hello, ... 1
and goodbye
$ mkdir -p deep && cd deep && export PLACE=here
$ echo $PLACE; pwd
here
.../deep
$ sh -c 'exit 3'
$ echo $?
3
```

```console
$ echo started; (sleep 1; echo later) & trap 'echo ended; exit' INT; while true; do sleep 0.1; done
started
```

Leave it running.

```console
later
```

```console
$ echo 'a long' \\
    command; echo more; echo last
...
last
^C
ended
```
"""
BAD = {
    "another output": "```console\n$ echo one\ntwo\n```",
    "more output": "```console\n$ echo one; echo two\none\n```",
    "less output": "```console\n$ echo one\none\ntwo\n```",
    "a command that fails": "```console\n$ sh -c 'exit 3'\n```",
    "no such command": "```console\n$ botyrad\n```",
    "a block that is not saved": "Here is code:\n\n```python\nprint(1)\n```",
    "output without a command": "```console\nhello\n```",
    "a program that has failed": "```console\n$ echo up; exit 4\nup\n```\n\nLeave it running.",
}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader without botyard."""
    if (lacks := missing_namespaces()) is not None:
        pytest.skip(f"needs {lacks}")
    network = Network()
    yield Reader(tmp_path, {"PATH": os.environ["PATH"]}, network)
    network.close()


def test_a_page_that_is_true_is_followed(reader: Reader, tmp_path: Path) -> None:
    """Files, state of the shell, failures that are shown, and programs left running."""
    (tmp_path / "page.md").write_text(GOOD)
    reader.follow(tmp_path / "page.md")


@pytest.mark.parametrize("case", BAD)
def test_a_page_that_is_not_true_is_an_error(
    case: str, reader: Reader, tmp_path: Path
) -> None:
    """It names the line."""
    (tmp_path / "page.md").write_text(BAD[case] + "\n")
    with pytest.raises(AssertionError, match=r"line [0-9]+: "):
        reader.follow(tmp_path / "page.md")
