"""Attacks: one a file. Each moves images inside a ThreatModel and says, per example, how far it came."""
