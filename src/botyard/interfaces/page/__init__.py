"""The simulator as the page sees it."""
