// Package clustertest finds addresses for the nodes of a test.
//
// A node of a test is stopped and started again at the same address, which is free meanwhile. A port that the system gives out itself
// would go to somebody else then: to a connection that leaves the machine, or to another test's cluster, whose nodes would meet ours.
// Addresses gives ports that the system gives to nobody, and each of them to one test at a time, whatever programs run side by side.
package clustertest
