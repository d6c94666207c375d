"""What users write: typed views of every kind, with their validation, conversion and CRDs."""
