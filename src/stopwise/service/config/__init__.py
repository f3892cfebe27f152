"""What the configuration file says: read, checked, and handed on as frozen objects."""
