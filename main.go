package main

// main will run the command that the arguments name.
func main() {}
