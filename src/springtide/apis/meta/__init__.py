"""What all kinds share: metadata, conditions, references, selectors."""
