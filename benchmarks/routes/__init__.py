"""What searching for ways costs at 10,000 nodes and 50,000 links."""
