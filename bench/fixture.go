package main

import "errors"

// fixtureSize is how much data there is. What is zero has the number of standardSize.
type fixtureSize struct {
	// institutions beyond those that the node knows by itself are invented, and so are currencies.
	institutions, currencies int
	accounts                 int // each with one key
	days                     int // of history, today included
}

// standardSize is about what the node has to do with.
func standardSize() fixtureSize {
	return fixtureSize{institutions: 45, currencies: 8, accounts: 1000, days: 30}
}

// fixture is what everybody serves.
type fixture struct {
	// dir is a data directory of the node. Danger: a node that runs on it changes it; copyData makes another one.
	dir string
	// catalogue is the file that describes what is invented, "" when nothing is. The node is given it with --catalogue.
	catalogue string
	// keys are one of each account.
	keys []string
}

// newFixture makes the data below an empty directory.
func newFixture(dir string, size fixtureSize) (*fixture, error) {
	return nil, errors.New("the fixture is not written yet")
}

// copyData copies a data directory that no node runs on.
func copyData(from, to string) error { return errors.New("the fixture is not written yet") }
