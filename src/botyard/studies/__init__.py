"""Studies: many seeded runs of one plan, in several processes, with tables and reports.

`plan` reads the plan from YAML. `expand` turns its parameters and seeds into runs, and
`run_hash` gives each run a hash of everything its result depends on. `local` hands the
runs to worker processes (`worker`), which carry them out (`runners`) and append one row
per finished run (`results`). `onray` does the same on the nodes of a Ray cluster.
`table` joins the rows into one table; `summary` and `report` evaluate it.
"""
