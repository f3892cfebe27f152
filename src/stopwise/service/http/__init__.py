"""May this request come in? Size, time, origin, key and scope; its id, log line and metrics."""
