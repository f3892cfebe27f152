"""What is shown of a learner at work: reports and alarms."""
