"""A simulated cluster: virtual time, what Kubernetes itself does, seeded faults and scenarios."""
