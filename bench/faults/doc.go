// Package faults tests the real program under crashes, power cuts, failing disks, clock steps and other planted
// faults. It has only tests. They take minutes, so they all have the build tag faults. make test-faults runs all of
// them; make test-faults FAULTS=W1 runs the tests with W1 in their name.
//
// A test is named after the ID of the guarantee that it checks, such as TestFaultsW1_..., and follows these rules:
//
//   - It counts the faults that took effect, prints their number in one line (function figure), and fails if there were
//     none.
//   - It has a control: the same test with a planted bug, which the test must find.
//   - An environment variable sets how often it repeats a fault: W1_KILLS, W2_CUTS, CLUSTER_KILLS.
//   - It calls need, needRoot or needFUSE if it needs programs such as strace, root or FUSE. On a machine without them
//     the test is skipped, and make test-faults reports that.
//
// Tests that mostly wait run in parallel (t.Parallel), after all others. None of them checks a time limit.
//
// The central functions and types:
//
//	start          the node, as a child process
//	client         clients in this process, which record every acknowledged change
//	checker        compares this record with what the node has after a fault
//	nodeCluster    three nodes as one cluster, and guests: nodes that only answer requests
//	clusterTest    clients that continue through every fault of a cluster
//
// A change is acknowledged when the first byte of a successful response has arrived in this process. One type,
// checker, serves single nodes, clusters and contents of backups. TestFaultsW1_ControlChecker is its control: without
// starting a process, it shows the checker each kind of violation.
//
// Tests of clusters cut networks in network namespaces (virtualNetwork). The environment sets their number of faults:
// CLUSTER_LEADERS, CLUSTER_KILLS, CLUSTER_CUTS, CLUSTER_PAUSES. TestFaultsCluster_Run mixes them with misuse and clocks
// that differ (CLUSTER_RUN).
package faults
