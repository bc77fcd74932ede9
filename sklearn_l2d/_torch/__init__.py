"""How nets are built, trained and asked: skorch and torch, batches, modules, losses, random numbers and devices."""
