// Package clustertest reserves addresses for the nodes of a test.
//
// A test stops its nodes and starts them again at the same addresses. A port chosen by the system could be given to
// another process in between: to an outgoing connection, or to a node of another test's cluster, which would then meet
// the nodes of this one. Addresses returns ports that the system does not choose, each reserved for one test at a time,
// across test processes.
package clustertest
