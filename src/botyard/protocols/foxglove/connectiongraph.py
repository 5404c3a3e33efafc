"""Changes of the graph of publishers, subscribers and services for Foxglove clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def graph_changes(
    old: Mapping[str, list[dict[str, Any]]], now: Mapping[str, list[dict[str, Any]]]
) -> dict[str, list[Any]]:
    """Return the fields of ``connectionGraphUpdate`` between two graphs.

    Parameters
    ----------
    old, now : mapping of str to list of dict
        Lists ``publishedTopics``, ``subscribedTopics`` and ``advertisedServices``, each
        of entries with ``name`` and the ids of the nodes. `old` may be empty for a
        client that has no graph yet; `now` has all three lists.

    Returns
    -------
    dict
        Changed and new entries of the three lists, ``removedTopics`` and
        ``removedServices``.
    """
    before = {
        key: {entry["name"]: entry for entry in entries} for key, entries in old.items()
    }

    fields: dict[str, list[Any]] = {
        key: [
            entry
            for entry in entries
            if before.get(key, {}).get(entry["name"]) != entry
        ]
        for key, entries in now.items()
    }

    names = {key: {entry["name"] for entry in entries} for key, entries in now.items()}
    topics = "publishedTopics", "subscribedTopics"
    gone = {n for key in topics for n in before.get(key, {})} - {
        n for key in topics for n in names[key]
    }

    # A topic remains while it has a publisher or a subscriber. If it has lost all
    # publishers, or all subscribers, an empty list of ids shows it.
    for key, ids in zip(topics, ("publisherIds", "subscriberIds"), strict=True):
        fields[key] += [
            {"name": n, ids: []}
            for n in before.get(key, {})
            if n not in names[key] and n not in gone
        ]

    services = {*before.get("advertisedServices", {})} - names["advertisedServices"]
    return {
        **fields,
        "removedTopics": sorted(gone),
        "removedServices": sorted(services),
    }
