"""Where autoscalers read metrics: PromQL, evaluated in this process or by Prometheus."""
