"""Whole pieces of work that join the rooms: each module is one thing a user asks for."""
