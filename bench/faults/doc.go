// Package faults tests the real program under crashes, power cuts, failing disks, clock steps and other planted
// faults. It has only tests. They take minutes, so they all have the build tag faults: make test-faults runs them,
// make test-faults FAULTS=W1 those of one goal.
//
// A test is named after the goal that it covers, such as TestFaultsW1_..., and follows these rules:
//
//   - It counts the faults that took effect, prints them in one line (figure), and fails if there were none.
//   - It has a control: the same test with a planted bug, which it must find.
//   - An environment variable sets how often it repeats a fault: W1_KILLS, W2_CUTS, CLUSTER_KILLS.
//   - It declares what it needs from the machine with need: root, a loop device, FUSE, strace. Without these it is
//     skipped, and make test-faults reports that.
//
// Tests that mostly wait run in parallel (t.Parallel), after all others. None of them checks a time limit.
//
//	start          the node, as a child process
//	client         clients in this process, which record every acknowledged change
//	checker        compares this record with what the node has after a fault
//	nodeCluster    three nodes as one service, and guests
//	clusterTest    clients that continue through every fault of a cluster
//
// A change is acknowledged when the first byte of a successful response has arrived in this process. One type,
// checker, serves single nodes, clusters and contents of backups. TestFaultsW1_ControlChecker plants each kind of
// violation without any process.
//
// Tests of clusters cut networks in network namespaces (virtualNetwork). The environment sets their number of faults:
// CLUSTER_LEADERS, CLUSTER_KILLS, CLUSTER_CUTS, CLUSTER_PAUSES. CLUSTER_SIDES is the number of clusters that share
// these faults. As many of them run at once as there are processors, or as go test -parallel says.
package faults
