"""From a log of any layout to one wide lazy frame."""
