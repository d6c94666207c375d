"""The runtime of controllers: transport, informer caches, work queues, leader election and the manager."""
