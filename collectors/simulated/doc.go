// Package simulated is a market that does not exist, and the sites of the institutions that publish it.
package simulated
