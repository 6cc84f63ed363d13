package main

func report(t *tables, root string) error { return nil }
