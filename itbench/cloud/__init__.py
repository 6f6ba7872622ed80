"""The AWS account and its bill: moto behind our own front, price book, rating."""
