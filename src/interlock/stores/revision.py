"""The revision of the schema, apart, so that opening an up-to-date store imports no SQLAlchemy.

Owns: one word.
Never: grows.
"""

HEAD = "0002"
