"""Rules of built-in kinds: between fields, and between an object and its stored version.

They run on objects whose fields have the declared types. `registry` lists them by kind.
"""
