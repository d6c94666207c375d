"""The cluster as controllers see it: a port with typed errors, caches, queues, leadership and the manager."""
