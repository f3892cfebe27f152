"""Many items: batches that are run as they are asked for, each stage called once on each."""
