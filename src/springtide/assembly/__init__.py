"""Puts worlds and controllers together, and reads what they work on: manifests, or the objects of a cluster.

`manifests` reads and validates files, those of Kubernetes' own kinds with `builtin_validation`; `staging` orders and
applies them. `embedded_cluster`, `live_cluster` and `simulated_cluster` start a world with our controllers in it, with
the `services` that controllers use. `cluster_reader` and `explanation_reader` read an existing cluster. The command
line and the dashboard present the results: nothing here prints, or knows of a terminal.
"""
