"""What the product relies on from any Kubernetes API, as tests that speak plain HTTP and use none of the product's code."""
