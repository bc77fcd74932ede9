"""The experiments of the benchmark, one file each; they are private and may change."""
