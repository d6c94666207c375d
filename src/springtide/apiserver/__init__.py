"""The Kubernetes API in this process: what is stored, what is refused, and who is told."""
