"""Where autoscalers read: PromQL, answered in this process or by Prometheus."""
