"""What this computer has: devices and the rule that picks them, threads for them, run sizes."""
