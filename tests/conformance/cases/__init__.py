"""The cases, one module for each area of the API."""
