"""What is measured: the floor, Interlock and its peers, each behind the same few verbs."""
