"""The Kubernetes API in memory: storage, verbs, admission, patches, watches, and HTTP on top."""
