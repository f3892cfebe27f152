"""Commands of a cascade that runs: what it learned, its service, the service's keys."""
