"""What is wrong with the servers, and how to mend it.

Each check gives findings; nothing is mended by itself.
"""
