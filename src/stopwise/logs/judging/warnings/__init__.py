"""What a careful reader of a log would point out."""
