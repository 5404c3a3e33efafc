"""The prose check reads pages: prose, but no code."""

from __future__ import annotations

from tools.prose import page_findings

PAGE = """\
# A page

{wide}
What a robot does is told to nobody.

| {wide} |
|---|

```python
print("that of")  # {wide}
```

    botyard run --too beside {wide}

Text with `that of` in code.

:::{{note}}
Stand beside it.
:::

````{{note}}
```sh
beside
```
It begins.
````

{link}
""".format(wide="word " * 30, link="[x](" + "y" * 120 + ")")


def test_findings_of_a_page() -> None:
    assert page_findings(PAGE) == [
        (3, "wide-prose"),
        (4, "nobody"),
        (4, "tell"),
        (4, "what-who"),
        (18, "beside"),
        (25, "begin"),
    ]
