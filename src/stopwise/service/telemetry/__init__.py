"""What OpenTelemetry receives of requests and calls: nothing, unless it was asked for.

`base` says what there is to tell, and tells nobody; `opentelemetry` tells spans and metrics.
"""
