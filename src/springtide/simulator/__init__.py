"""The world in memory: an API server, the behaviours of a cluster, virtual time and seeded faults."""
