"""How long what others send may be, whatever it comes by. Lengths are looked at before anything is decoded."""

from __future__ import annotations

from typing import Final

MAX_INPUT: Final = 64 << 10
"""Longest message that is listened to unless its topic says otherwise, bytes: a velocity has 48."""
MAX_REQUEST: Final = 64 << 10
"""Longest request of a service, bytes."""
MAX_TEXT: Final = 300
"""So much of an error or of another's text is shown, characters."""
MAX_WAITING: Final = 10
"""Messages of a topic, from threads of a library, that wait for the loop: the oldest are dropped for new ones."""
MAX_REQUESTS: Final = 100
"""Requests of a service that wait; more are not answered."""
MAX_LISTED: Final = 1000
"""Names in one request."""
