// Package faults tests the real program under crashes, power cuts, failing disks, clock steps and other planted faults.
// It has only tests, all behind the build tag faults, because they take minutes: make test-faults runs them,
// make test-faults FAULTS=W1 those of one goal.
//
// A test is named after the goal that it covers, TestFaultsW1_..., and keeps these rules:
//
//   - It counts the faults that took effect, prints them in one figure line (figure), and fails if there were none.
//   - It has a control: the same test with a planted bug, which it must find.
//   - An environment variable sets how often it repeats a fault: W1_KILLS, W2_CUTS, CLUSTER_KILLS.
//   - It names what it needs from the machine (root, a loop device, FUSE, strace) with need. Without these it is
//     skipped, and make test-faults counts it.
//
// Tests that mostly wait run in parallel (t.Parallel), after all others; none of them holds a time against a limit.
//
// The node is a child process (start). Its clients run in this process, with a record of what was acknowledged
// (checker): one checker for a single node, for all nodes of a cluster, and for the contents of a backup.
// TestFaultsW1_ControlChecker plants each kind of violation without any process. Acknowledged means that the first byte
// of a good answer arrived in this process.
//
// TestFaultsCluster_... test three processes that are one service, and guests (nodeCluster), with clients that go on
// through every fault (clusterTest) and networks that are cut in their own namespaces (virtualNetwork). The environment
// sets the number of faults: CLUSTER_LEADERS, CLUSTER_KILLS, CLUSTER_CUTS, CLUSTER_PAUSES; and CLUSTER_SIDES how many
// clusters share them, of which as many run at once as there are processors, or as go test -parallel says.
package faults
