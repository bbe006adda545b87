"""What is seen: views are pure functions of the event log, and need neither torch nor a running engine."""
