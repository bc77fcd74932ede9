"""The pictures of these pages, drawn by code: the idea, the choice of a deferrer, and the evidence."""
