"""Studies: many seeded runs of a plan in several processes, each kept when it ends;
tables and reports of them.

A `plan` is read of YAML; `points` makes runs of its parameters, and `keys` names each
by all that its result depends on. `local` has them carried out by processes (`worker`),
which know how (`kinds`) and append a row for each (`rows`); `onray` has that done on
the computers of a cluster. `table` joins the rows, `summary` and `report` say what is
in them.
"""
