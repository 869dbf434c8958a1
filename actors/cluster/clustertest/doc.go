// Package clustertest reserves addresses for the nodes of a test.
//
// A test stops its nodes and starts them again at the same addresses. If the operating system had chosen the ports, it
// could give them to another process in between. Nodes of one test could then connect to nodes of another test.
// Therefore Addresses returns ports that the operating system never chooses. It reserves each port for one test at a
// time, also among test processes.
package clustertest
