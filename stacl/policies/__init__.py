"""When to speak: how much source is read before each target unit. One file a policy; no torch, no text."""
