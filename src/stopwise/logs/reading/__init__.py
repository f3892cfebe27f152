"""From files, frames and queries to counted patterns and rows."""
