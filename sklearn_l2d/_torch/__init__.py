"""Everything skorch and torch: ensembles of nets, the EM net, batches, seeding and devices."""
