"""The published benchmark of policies: instances, runs that can be resumed, tables and plots."""
