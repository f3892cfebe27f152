"""Live rounds that are decided per item: after each stage the rule is asked with the situation."""
