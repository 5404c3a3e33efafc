"""Pages of reports in a browser."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from botyard.pictures.reportpage import document, plain_table

ROWS = [
    (
        "drift of heading for each turn of 360°: scatter over 1 s",
        "-0.0001704 (-1.443e-05 … 0.0001931)",
        "0.06399 (0.04701 … 0.07734)",
        "random part of the turning error: half of (odometry.error[2] − odometry.error_low[2])",
    )
]


def test_all_columns_are_in_sight_and_numbers_are_whole(
    browser: Browser, tmp_path: Path
) -> None:
    """Tables wrap, but not within an interval."""
    path = tmp_path / "r.html"
    path.write_text(
        document(
            "r",
            [
                plain_table(
                    ("quantity", "real", "simulated", "what"), ROWS, is_last_text=True
                )
            ],
        )
    )
    page = browser.new_page(viewport={"width": 900, "height": 600})
    page.goto(path.as_uri())
    assert page.evaluate(
        "document.querySelector('table').scrollWidth <= document.querySelector('table').clientWidth"
    )
    spans = page.evaluate(
        "[...document.querySelectorAll('td span')].map(s => s.getClientRects().length)"
    )
    assert spans == [1, 1, 1, 1]
    page.close()
