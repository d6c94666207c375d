"""What fits on which nodes, and which nodes are cheapest to add."""
