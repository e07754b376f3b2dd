"""What tests of other programs take from Theano's own."""
